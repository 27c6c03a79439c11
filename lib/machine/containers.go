// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"context"
	"errors"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

var (
	errNotDocker = errors.New("is not Docker: that prints one line \"Docker version …\"")
	errTestImage = errors.New("the test image did not run: it should end with status 37")
)

// exitOfTest is the status with which the program in a test image ends.
const exitOfTest = 37

// docker asks DOCKER for its version and for its server, and runs the test
// image where one is installed (DOCKER_PERFORM_TEST).
func (p Prober) docker(ctx context.Context, snap *config.Snapshot, found *classad.Ad) error {
	command := strings.Fields(snap.String("DOCKER"))
	if len(command) == 0 {
		return nil
	}
	if command[0] == "sudo" {
		command[0] = "/usr/bin/sudo"
	}
	with := func(args ...string) []string { return append(command[:len(command):len(command)], args...) }
	argv := with("-v")
	out, there, err := p.run(ctx, patience, argv)
	if err != nil || !there {
		return err
	}
	if out.Status != 0 {
		return failed(argv, out)
	}
	version := firstLine(out.Stdout)
	if !strings.HasPrefix(version, "Docker version ") || bytes.Count(bytes.TrimSpace(out.Stdout), []byte("\n")) > 0 {
		return errs.E("machine.docker", errs.Broken, command[0], errNotDocker)
	}
	argv = with("info")
	if out, _, err = p.run(ctx, patience, argv); err != nil {
		return err
	}
	if out.Status != 0 {
		return failed(argv, out)
	}
	if err := p.testDocker(ctx, snap, with); err != nil {
		return err
	}
	found.SetBool("HasDocker", true)
	found.SetBool("HasDockerURL", true)
	found.SetBool("HasContainer", true)
	found.SetString("DockerVersion", version)
	if strings.Contains(version, "20.10.4,") {
		found.SetBool("HasDocker", false)
		found.SetString("DockerOfflineReason", "Unsupported Docker Version (20.10.4) detected")
	}
	return nil
}

// testDocker loads the test image, runs it and removes it. Without the image
// on disk there is no test: an installation may come without.
func (p Prober) testDocker(ctx context.Context, snap *config.Snapshot, with func(...string) []string) error {
	wanted, err := snap.Bool("DOCKER_PERFORM_TEST")
	if err != nil {
		return err
	}
	image, file := snap.String("DOCKER_TEST_IMAGE_NAME"), snap.String("DOCKER_TEST_IMAGE_PATH")
	if !wanted || image == "" || file == "" {
		return nil
	}
	if p.Arch == "aarch64" {
		image, file = image+"_arm", file+"_arm"
	}
	argv := with("load", "-i", file)
	out, _, err := p.run(ctx, patience, argv)
	if err != nil {
		return err
	}
	if out.Status != 0 {
		if bytes.Contains(out.Stderr, []byte("no such file")) {
			return nil
		}
		return failed(argv, out)
	}
	ran, _, err := p.run(ctx, patience, with("run", "--rm=true", image, "/exit_37"))
	_, _, errRemove := p.run(ctx, patience, with("rmi", image))
	if err == nil && ran.Status != exitOfTest {
		err = errs.E("machine.docker", errs.Broken, image, errTestImage)
	}
	return errors.Join(err, errRemove)
}

// usualPlaces are where SINGULARITY is looked for if the owner does not say
// and an installation did not bring its own.
var usualPlaces = [...]string{"/usr/bin/apptainer", "/usr/bin/singularity", "/usr/local/bin/apptainer", "/usr/local/bin/singularity"}

// singularity asks SINGULARITY for its version and runs the two test images: a
// directory (SINGULARITY_TEST_SANDBOX) and a file. With neither working it is
// there and of no use.
func (p Prober) singularity(ctx context.Context, snap *config.Snapshot, found *classad.Ad) error {
	limit, err := snap.Duration("SINGULARITY_TEST_SANDBOX_TIMEOUT")
	if err != nil {
		return err
	}
	places := []string{strings.TrimSpace(snap.String("SINGULARITY"))}
	if set, ok := snap.Lookup("SINGULARITY"); !ok || set.IsDefault {
		places = append(places, usualPlaces[:]...)
	}
	for _, exec := range places {
		if exec == "" {
			continue
		}
		argv := []string{exec, "--version"}
		out, there, err := p.run(ctx, patience, argv)
		switch {
		case err != nil:
			return err
		case !there:
			continue
		case out.Status != 0:
			return failed(argv, out)
		}
		version := firstLine(out.Stdout)
		if version == "" {
			return nil
		}
		found.SetString("SingularityVersion", version)
		return p.containers(ctx, snap, exec, limit, found)
	}
	return nil
}

// containers finds out what kinds of image a Singularity can run.
func (p Prober) containers(ctx context.Context, snap *config.Snapshot, exec string, limit time.Duration, found *classad.Ad) error {
	t := imageTest{Prober: p, exec: exec, limit: limit, namespaces: true, retry: true}
	switch strings.ToLower(strings.TrimSpace(snap.String("SINGULARITY_USE_PID_NAMESPACES"))) {
	case "true":
		t.retry = false
	case "false":
		t.namespaces, t.retry = false, false
	}
	sandbox := snap.String("SINGULARITY_TEST_SANDBOX")
	_, runsSandbox := t.run(ctx, sandbox, "/exit_37")
	_, runsSIF := t.run(ctx, path.Join(snap.String("LIBEXEC"), "exit_37.sif"), "/exit_37")
	if !runsSandbox && !runsSIF {
		reason := "Both SIF and Sandbox tests on startup failed"
		if t.last != "" {
			reason += " : " + t.last
		}
		found.SetBool("HasSingularity", false)
		found.SetString("SingularityOfflineReason", reason)
		return errs.E("machine.singularity", errs.Broken, exec, errors.New(reason))
	}
	if number, ok := t.run(ctx, sandbox, "/get_user_ns"); ok && p.UserNamespace != 0 {
		if n, err := strconv.ParseUint(number, 10, 64); err == nil {
			found.SetBool("SingularityUserNamespaces", n != p.UserNamespace)
		}
	}
	for _, name := range [...]string{"HasSingularity", "HasContainer", "HasDockerURL"} {
		found.SetBool(name, true)
	}
	if runsSandbox {
		found.SetBool("HasSandboxImage", true)
	}
	if runsSIF {
		found.SetBool("HasSIF", true)
	}
	found.SetBool("HasPidNamespaces", t.namespaces)
	return nil
}

// imageTest runs programs in test images.
type imageTest struct {
	Prober
	exec       string
	limit      time.Duration
	namespaces bool   // with PID namespaces, as jobs will be
	retry      bool   // go on without them if it fails with them
	last       string // what was last said about a failure
}

// run runs a program of an image, which must end with exitOfTest, and returns
// the first line that it printed.
func (t *imageTest) run(ctx context.Context, image, program string) (string, bool) {
	for {
		argv := []string{t.exec, "exec", "-C", image, program}
		if !t.namespaces {
			argv = []string{t.exec, "exec", "--contain", "--ipc", "--cleanenv", image, program}
		}
		out, _, err := t.Prober.run(ctx, t.limit, argv)
		if err == nil && out.Status == exitOfTest {
			return firstLine(out.Stdout), true
		}
		if err != nil {
			t.last = err.Error()
		}
		for line := range bytes.Lines(out.Stderr) {
			if words := firstLine(line); words != "" {
				t.last = words
			}
		}
		if !t.retry || !t.namespaces || ctx.Err() != nil {
			return "", false
		}
		t.namespaces = false
	}
}
