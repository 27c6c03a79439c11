// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gpus decides which libraries of drivers are asked for the GPUs of a machine,
// and whose answer counts, as condor_gpu_discovery does: NVIDIA's, HIP where those show
// nothing, OpenCL where neither does; or the ones that are asked for. It owns this
// order. It must never load a library: they are handed in, and on Linux they are
// platform/linux/gpu's. How devices are printed is lib/gpu's.
package gpus
