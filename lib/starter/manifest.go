// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/jobenv"
)

// manifestDir is the directory into which is written what the job found and
// left in its scratch directory (ManifestDir, ManifestDesired), "" if the job
// wants none.
func (j *job) manifestDir() string {
	if dir, ok := j.ad.EvalString("ManifestDir", nil); ok && dir != "" {
		return dir
	}
	if yes, _ := j.ad.EvalBool("ManifestDesired", nil); !yes {
		return ""
	}
	cluster, ok1 := j.ad.EvalInt("ClusterId", nil)
	proc, ok2 := j.ad.EvalInt("ProcId", nil)
	if !ok1 || !ok2 {
		return "_condor_manifest"
	}
	return fmt.Sprintf("%d_%d_manifest", cluster, proc)
}

// manifest writes one file of the manifest, the list of the scratch directory
// if write is nil. What goes wrong is the job's own loss.
func (s *shadowJob) manifest(name string, write func(io.Writer) error) {
	a := s.a
	dir := ""
	if a.job.transfer {
		dir = a.job.manifestDir()
	}
	if dir == "" {
		return
	}
	if err := a.box.Manifest(dir, name, write); err != nil {
		s.log.Warn("the manifest of the job is not whole", "err", err)
		return
	}
	s.told = dir
}

// manifestIn writes what the job finds, its ads too.
func (s *shadowJob) manifestIn() error {
	a := s.a
	if a.job.transfer && a.job.manifestDir() != "" {
		if err := a.writeAds(); err != nil {
			return err
		}
		s.manifest("in", nil)
	}
	return nil
}

// manifestEnv writes the environment of the job, without what tells its
// processes apart.
func (s *shadowJob) manifestEnv(env []string) {
	s.manifest("environment", func(w io.Writer) error {
		marker, _, _ := strings.Cut(s.a.note.Marker, "=")
		shown := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
			name, _, _ := strings.Cut(entry, "=")
			return name == marker
		})
		_, err := fmt.Fprintln(w, jobenv.ArgsToV2(shown))
		return err
	})
}
