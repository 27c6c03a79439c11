// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/jobenv"
	"github.com/execpoint/execpoint/lib/starter/job"
)

// manifestDir is the directory into which is written what the job found and
// left in its scratch directory (ManifestDir, ManifestDesired), "" if the job
// wants none.
func manifestDir(j *job.Job) string {
	if dir, ok := j.Ad.EvalString("ManifestDir", nil); ok && dir != "" {
		return dir
	}
	if yes, _ := j.Ad.EvalBool("ManifestDesired", nil); !yes {
		return ""
	}
	cluster, ok1 := j.Ad.EvalInt("ClusterId", nil)
	proc, ok2 := j.Ad.EvalInt("ProcId", nil)
	if !ok1 || !ok2 {
		return "_condor_manifest"
	}
	return fmt.Sprintf("%d_%d_manifest", cluster, proc)
}

// writeManifest writes one file of the manifest, the list of the scratch directory
// if write is nil. What goes wrong is the job's own loss.
func (m *mover) writeManifest(name string, write func(io.Writer) error) {
	dir := ""
	if m.place.Job.Moves {
		dir = manifestDir(m.place.Job)
	}
	if dir == "" {
		return
	}
	if err := m.place.Box.Manifest(dir, name, write); err != nil {
		m.conv.log.Warn("the manifest of the job is not whole", "err", err)
		return
	}
	m.manifest = dir
}

// manifestIn writes what the job finds, its ads too.
func (m *mover) manifestIn() error {
	if m.place.Job.Moves && manifestDir(m.place.Job) != "" {
		if err := m.place.WriteAds(); err != nil {
			return err
		}
		m.writeManifest("in", nil)
	}
	return nil
}

// manifestEnv writes the environment of the job, without what tells its
// processes apart.
func (m *mover) manifestEnv(env []string) {
	m.writeManifest("environment", func(w io.Writer) error {
		marker, _, _ := strings.Cut(m.place.Marker, "=")
		shown := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
			name, _, _ := strings.Cut(entry, "=")
			return name == marker
		})
		_, err := fmt.Fprintln(w, jobenv.ArgsToV2(shown))
		return err
	})
}
