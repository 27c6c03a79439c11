// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history keeps the ads of jobs that have ended in the field's history
// files: one record after another, each an ad in the old syntax, an attribute
// to a line, closed by a banner line that begins with three asterisks. A file
// that is full is rotated; condor_history -file reads them, and so does
// Backwards, from the newest record on. It must never decide what belongs into
// a record, and never keep more of a file in memory than one record.
package history
