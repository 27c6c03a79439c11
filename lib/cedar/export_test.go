// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

// Held returns how many messages are under way and how many bytes they hold.
func (a *Assembler) Held() (messages, bytes int) { return len(a.messages), a.held }
