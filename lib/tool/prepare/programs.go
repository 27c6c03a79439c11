// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
)

// WantsPrograms reports whether a job or the configuration mentions what only
// a probe of the programs tells. A run without a pool that does not ask needs
// no probe: it would cost more than a short job.
func WantsPrograms(jobs []*classad.Ad, snap *config.Snapshot) bool {
	var text strings.Builder
	for _, name := range snap.Names() {
		if s, ok := snap.Lookup(name); ok && !s.IsDefault {
			text.WriteString(s.Value)
			text.WriteByte('\n')
		}
	}
	for _, ad := range jobs {
		for _, name := range [...]string{"Requirements", "Rank"} {
			if e, ok := ad.Lookup(name); ok {
				text.WriteString(e.Text(classad.Old))
				text.WriteByte('\n')
			}
		}
		if text.Len() > maxMentions {
			return true // cheaper than to read on
		}
	}
	all := strings.ToLower(text.String())
	for _, name := range machine.ProbedAttributes() {
		if strings.Contains(all, strings.ToLower(name)) {
			return true
		}
	}
	return false
}

// maxMentions is how much text is searched, in bytes.
const maxMentions = 4 << 20
