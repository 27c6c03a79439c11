// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package thishost gives our programs the operating system they run on: it
// chooses the packages of the platform and puts them together. It must never
// decide anything else, and be used by nothing but programs.
package thishost
