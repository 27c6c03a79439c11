// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/platform/linux/bound"
)

// saysMethods is a plugin that can these methods, once it was let go on where it
// waits, if it does; it notes in the file asked that it was asked.
func (s *site) saysMethods(name, wait, methods string) {
	s.t.Helper()
	if wait != "" {
		wait = "read go <" + s.path(wait) + "\n"
	}
	s.program(name, "echo "+name+" >>"+s.path("asked")+"\n"+wait+`echo 'PluginType = "FileTransfer"'; echo 'MultipleFileSupport = true'; echo 'SupportedMethods = "`+methods+`"'`+"\n")
}

// asked is how often a plugin was.
func (s *site) asked(name string) int {
	b, _ := os.ReadFile(s.path("asked"))
	return strings.Count("\n"+string(b), "\n"+name+"\n")
}

// A plugin that does not answer keeps nothing back: neither the first ad, nor what
// another plugin says, nor a reconfig. What it can is told when it has answered, with
// an update of its own.
func TestPluginThatHangs(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	s := newSite(t, "COLLECTOR_HOST = "+c.at+"\nFILETRANSFER_PLUGIN_CLASSAD_TIMEOUT = 600\nFILETRANSFER_PLUGINS = $(LOCAL_DIR)/hangs, $(LOCAL_DIR)/quick\n")
	s.must(syscall.Mkfifo(s.path("gate"), 0o600))
	s.saysMethods("hangs", "gate", "gopher")
	s.saysMethods("quick", "", "wais")
	l := s.live()

	c.hears("data,http,https,wais")
	first, _ := c.told()[0].EvalString("HasFileTransferPluginMethods", nil)
	if !strings.HasPrefix(first, "data,http,https") {
		t.Errorf("the first ad has %q", first)
	}
	l.says("waiting for the programs of FILETRANSFER_PLUGINS")
	l.reconfigured(1, "")
	c.hears("data,http,https,wais")

	// The second to be asked waits at the same gate; the first one was ended.
	gate, err := os.OpenFile(s.path("gate"), os.O_RDWR, 0)
	s.must(err)
	defer func() { _ = gate.Close() }()
	_, err = gate.WriteString("\n\n")
	s.must(err)
	ad := c.hears("data,gopher,http,https,wais")
	if able, _ := ad.EvalBool("HasJobTransferPlugins", nil); !able {
		t.Error("the ad lacks HasJobTransferPlugins")
	}

	// A reconfig asks only the program that is another one.
	hangs, quick := s.asked("hangs"), s.asked("quick")
	s.must(os.Remove(s.path("quick")))
	s.saysMethods("quick", "", "archie")
	l.reconfigured(2, "")
	c.hears("archie,data,gopher,http,https")
	if n := s.asked("hangs") - hangs; n != 0 {
		t.Errorf("a program that has answered was asked %d times more", n)
	}
	if n := s.asked("quick") - quick; n != 1 {
		t.Errorf("a program that was replaced was asked %d times", n)
	}
	l.end()
}

// An order to end does not wait for a plugin that does not answer.
func TestEndWhilePluginHangs(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	s := newSite(t, "COLLECTOR_HOST = "+c.at+"\nFILETRANSFER_PLUGIN_CLASSAD_TIMEOUT = 600\nFILETRANSFER_PLUGINS = $(LOCAL_DIR)/hangs\n")
	s.must(syscall.Mkfifo(s.path("gate"), 0o600))
	s.saysMethods("hangs", "gate", "gopher")
	cmd := s.command("-f")
	s.must(bound.Start(cmd))
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	eventually(t, "the plugin is asked", func() error {
		_, err := os.Stat(s.path("asked"))
		return err
	})
	c.hears("data,http,https")
	s.must(cmd.Process.Signal(syscall.SIGTERM))
	late := time.AfterFunc(60*time.Second, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	s.must(cmd.Wait())
}
