// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package adtext reads and prints ads as people keep them in files: in the old
// syntax, the new one, JSON or XML, told by how the text begins where nobody says
// which. It owns the names of these syntaxes (the values of -syntax and -format),
// the limit on the length of an ad, and how a mistake in such a text is shown. What
// the syntaxes mean is lib/classad's. It must never open a file: it is handed
// readers and writers.
package adtext
