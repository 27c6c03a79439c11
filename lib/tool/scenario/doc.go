// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenario plays the scenario of a file, under its configuration or others. It
// owns which configuration and which machine count where the scenario, the caller and a
// comparison each name one, and the limits on the files. What happens in a scenario and
// how it is printed is lib/simulate's. It must never start anything or look at the
// machine on which it runs: it reads the files that are named, and nothing else.
package scenario
