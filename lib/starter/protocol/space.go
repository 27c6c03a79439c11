// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// SpaceSettings are what the configuration says about what a job sees of the machine.
type SpaceSettings struct {
	Under      string `json:",omitempty"` // MOUNT_UNDER_SCRATCH as it is written
	PrivateShm bool   // MOUNT_PRIVATE_DEV_SHM
	PerJob     bool   // PER_JOB_NAMESPACES: false makes no mounts, and no process numbers either, which need one
	PIDs       bool   // USE_PID_NAMESPACES
	NoNetwork  bool   // NO_JOB_NETWORKING
	// Asked says that the owner has set one of these so that jobs get something of their
	// own. Root gives jobs what the defaults say. Without root all of it takes a user
	// namespace, in which set-uid programs do not work and only one account is known.
	// So jobs that ran before keep running where nobody asked.
	Asked   bool
	Encrypt bool // ENCRYPT_EXECUTE_DIRECTORY, which no system is asked for here: it makes /tmp private all the same
}

// space reads them.
func (r *reader) space() SpaceSettings {
	s := SpaceSettings{
		Under: r.String("MOUNT_UNDER_SCRATCH"), PrivateShm: r.Bool("MOUNT_PRIVATE_DEV_SHM"), PerJob: r.Bool("PER_JOB_NAMESPACES"),
		PIDs: r.Bool("USE_PID_NAMESPACES"), NoNetwork: r.Bool("NO_JOB_NETWORKING"), Encrypt: r.Bool("ENCRYPT_EXECUTE_DIRECTORY"),
	}
	asked := r.written("PER_JOB_NAMESPACES") || s.PIDs || s.PrivateShm && r.written("MOUNT_PRIVATE_DEV_SHM") || s.Under != "" && r.written("MOUNT_UNDER_SCRATCH")
	s.Asked = s.NoNetwork || s.PerJob && asked
	return s
}

// Dirs are the directories of MOUNT_UNDER_SCRATCH for a job (MY, and without a prefix)
// on a machine (TARGET), as the documents write the expression. HTCondor has no TARGET
// there. A text that is no expression is the list itself, as in HTCondor. The error is
// an expression that gives no string: HTCondor's starter ends then without a word to the
// shadow, and the job begins again for ever.
func (s *SpaceSettings) Dirs(job, machine *classad.Ad, now time.Time) ([]string, error) {
	text := s.Under
	if x, err := classad.ParseExpr(text, classad.Old); text != "" && err == nil {
		v := x.Eval(&classad.Env{My: job, Target: machine, Now: now})
		said, ok := v.AsString()
		if !ok {
			return nil, fmt.Errorf("MOUNT_UNDER_SCRATCH of this machine gives %v, not a string with a list of directories", v)
		}
		text = said
	}
	if s.Encrypt {
		text = "/tmp,/var/tmp," + text
	}
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }), nil
}
