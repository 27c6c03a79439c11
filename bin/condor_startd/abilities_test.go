// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/execpoint/execpoint/platform/linux/bound"
)

// What starters can do is asked again when the configuration is read again, as
// the original asks its starter again (Starter::config of its main_config): the
// plugins that move files by URL, and the programs of the machine.
func TestAbilitiesFollow(t *testing.T) {
	t.Parallel()
	// A Java of the machine's own says nothing about the one that comes later.
	s := newSite(t, "FILETRANSFER_PLUGINS = $(LOCAL_DIR)/old\nJAVA = $(LOCAL_DIR)/nothing\n")
	script := func(name, text string) {
		s.must(os.WriteFile(s.path(name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	}
	plugin := func(name, methods string) {
		script(name, `echo 'PluginType = "FileTransfer"'; echo 'MultipleFileSupport = true'; echo 'SupportedMethods = "`+methods+`"'`)
	}
	plugin("old", "gopher,wais")
	plugin("new", "dav")
	script("java", `echo 'Property settings:'; echo '    java.vendor = Acme'; echo '    java.version = 99.1'`)
	cmd := s.command("-f")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	s.must(bound.Start(cmd))
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	c := s.client()
	shows := func(methods string, plugins bool) {
		t.Helper()
		eventually(t, "the slot shows "+methods, func() error {
			at, err := s.address()
			if err != nil {
				return err
			}
			ads, err := slots(c, at)
			if err != nil {
				return err
			}
			for _, ad := range ads {
				got, _ := ad.EvalString("HasFileTransferPluginMethods", nil)
				able, _ := ad.EvalBool("HasJobTransferPlugins", nil)
				list, _ := ad.EvalString("StarterAbilityList", nil)
				if got != methods || able != plugins || strings.Contains(list, "HasJobTransferPlugins") != plugins || strings.Count(list, "HasReconnect") != 1 {
					return fmt.Errorf("methods %q, HasJobTransferPlugins %v, abilities %s", got, able, list)
				}
			}
			if len(ads) == 0 {
				return fmt.Errorf("no slot")
			}
			return nil
		})
	}
	again := func(line string) {
		t.Helper()
		file, err := os.OpenFile(s.path("condor_config"), os.O_APPEND|os.O_WRONLY, 0)
		s.must(err)
		_, err = file.WriteString(line + "\n")
		s.must(err)
		s.must(file.Close())
		s.must(cmd.Process.Signal(syscall.SIGHUP))
	}
	shows("data,gopher,http,https,wais", true)
	again("FILETRANSFER_PLUGINS = $(LOCAL_DIR)/new\nSTARTD_ATTRS = Hall\nHall = 1")
	shows("data,dav,http,https", true)
	again("ENABLE_URL_TRANSFERS = False")
	shows("", false)
	again("ENABLE_URL_TRANSFERS = True\nFILETRANSFER_PLUGINS =")
	shows("data,http,https", true)
	// A Java that works is no ability of a starter that runs no Java jobs.
	again("JAVA = $(LOCAL_DIR)/java\nSTARTD_ATTRS = Hall, Floor\nFloor = 2")
	eventually(t, "the configuration is taken over, and there is no Java", func() error {
		at, err := s.address()
		if err != nil {
			return err
		}
		ads, err := slots(c, at)
		if err != nil {
			return err
		}
		for _, ad := range ads {
			if floor, _ := ad.EvalInt("Floor", nil); floor != 2 {
				return fmt.Errorf("not yet")
			}
			list, _ := ad.EvalString("StarterAbilityList", nil)
			for _, name := range []string{"HasJava", "JavaVersion", "HasDocker", "HasSingularity", "HasContainer", "HasVM"} {
				if _, there := ad.Lookup(name); there || strings.Contains(list, name) {
					t.Errorf("%s is advertised, abilities %s", name, list)
				}
			}
		}
		return nil
	})
}

// A plugin whose method the owner has tried (<METHOD>_TEST_URL) is not offered for it
// while it does not fetch that URL, and is said to be offline; each reconfig tries again.
// Nothing of a trial stays.
func TestPluginsAreTried(t *testing.T) {
	t.Parallel()
	s := newSite(t, "FILETRANSFER_PLUGINS = $(LOCAL_DIR)/old_plugin\nGOPHER_TEST_URL = gopher://hole/x\nwais_TEST_URL = wais://hole/y\n")
	s.must(os.WriteFile(s.path("old_plugin"), []byte(`#!/bin/sh
if [ "$1" = -classad ]; then
	echo 'PluginType = "FileTransfer"'; echo 'MultipleFileSupport = true'; echo 'SupportedMethods = "gopher,wais,https"'
	exit
fi
grep -q gopher://hole/x "$2" && [ ! -e '`+s.path("up")+`' ] && { echo '[ TransferUrl = "gopher://hole/x"; TransferSuccess = false; TransferError = "nobody is there" ]' >"$4"; exit 1; }
echo '[ TransferUrl = "x"; TransferSuccess = true ]' >"$4"
`), 0o755))
	// Under root the trial has the rights of nobody.
	for _, dir := range []string{s.path(""), filepath.Dir(s.path("x")), filepath.Dir(filepath.Dir(s.path("x")))} {
		s.must(os.Chmod(dir, 0o755))
	}
	cmd := s.command("-f")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	s.must(bound.Start(cmd))
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	c := s.client()
	shows := func(methods, offline string) {
		t.Helper()
		eventually(t, "the slot shows "+methods, func() error {
			at, err := s.address()
			if err != nil {
				return err
			}
			ads, err := slots(c, at)
			if err != nil || len(ads) == 0 {
				return fmt.Errorf("%d slots, %w", len(ads), err)
			}
			got, _ := ads[0].EvalString("HasFileTransferPluginMethods", nil)
			down, _ := ads[0].EvalString("OfflineFileTransferPluginMethods", nil)
			if got != methods || down != offline {
				return fmt.Errorf("methods %q, offline %q", got, down)
			}
			return nil
		})
	}
	shows("data,http,https,wais", "gopher")
	s.must(os.WriteFile(s.path("up"), nil, 0o644))
	s.must(cmd.Process.Signal(syscall.SIGHUP))
	shows("data,gopher,http,https,wais", "")
	left, err := os.ReadDir(s.path("execute"))
	s.must(err)
	for _, e := range left {
		if strings.Contains(e.Name(), "test_file_transfer") {
			t.Errorf("%s is left in EXECUTE", e.Name())
		}
	}
}
