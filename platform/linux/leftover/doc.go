// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leftover finds what a job left on the machine outside of its scratch
// directory, and takes it away where that is proven to be the job's: objects of System
// V, files in the directories where everybody may write, mounts below the scratch
// directory. It must never touch what is of another user, what is older than the job,
// or what a link leads to, and never look longer than its bounds.
package leftover
