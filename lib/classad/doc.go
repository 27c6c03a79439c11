// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package classad is the ClassAd language.
package classad
