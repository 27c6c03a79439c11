// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package confio reads for lib/config what a configuration names: files,
// directories and the output of commands. It bounds what a command may take and
// write, and ends it with all it started. It must never run anything that no
// configuration names.
package confio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/config"
)

// Limits of what a configuration may run.
const (
	commandTime  = 30 * time.Second // a command that takes longer is ended
	commandBytes = 16 << 20         // of its output; config refuses more anyway
	commandGrace = time.Second      // for a program that holds its output after its end
)

// ReadDir returns the names in a directory that are not directories.
func ReadDir(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if info, err := os.Stat(path + "/" + e.Name()); err != nil || !info.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// IsDir opens a file for reading and says whether it is a directory.
func IsDir(path string) (directory bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	return info.IsDir(), nil
}

// WriteFile writes a whole file.
func WriteFile(path string, data []byte) error { return os.WriteFile(path, data, 0o644) }

// RunCommand runs a command of the configuration and returns its output.
func RunCommand(command string) ([]byte, error) {
	return runWithin(context.Background(), commandTime, nil, command)
}

// RunUntil is RunCommand for commands that are ended when ctx ends.
func RunUntil(ctx context.Context) func(command string) ([]byte, error) { return RunWith(ctx, nil) }

// RunWith is RunUntil for commands that have env as their environment; nil is that of
// this process. A daemon leaves out of it what its parent handed down: keys.
func RunWith(ctx context.Context, env []string) func(command string) ([]byte, error) {
	return func(command string) ([]byte, error) { return runWithin(ctx, commandTime, env, command) }
}

// runWithin is RunCommand with another limit and environment.
func runWithin(ctx context.Context, limit time.Duration, env []string, command string) ([]byte, error) {
	words, err := split(command)
	if err != nil {
		return nil, err
	}
	around := ctx
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.WaitDelay = commandGrace
	end := prepare(cmd)
	out := limited{stop: cancel}
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, os.Stderr, env
	err = cmd.Run()
	var ended *exec.ExitError
	switch {
	case out.over:
		return nil, fmt.Errorf("the command wrote more than %d bytes and was ended", commandBytes)
	case around.Err() != nil:
		return nil, fmt.Errorf("the command was ended: %w", context.Cause(around))
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the command took longer than %v and was ended", limit)
	case errors.Is(err, exec.ErrWaitDelay):
		end()
		return nil, fmt.Errorf("the command ended, and a program that it started held its output for %v more and was ended", commandGrace)
	case errors.As(err, &ended):
		return out.kept.Bytes(), &config.ExitError{Status: ended.ExitCode()}
	}
	return out.kept.Bytes(), err
}

// limited keeps what is written, and stops the writer at commandBytes. The
// buffer is not embedded: its ReadFrom would know no limit.
type limited struct {
	kept bytes.Buffer
	over bool
	stop func()
}

func (l *limited) Write(p []byte) (int, error) {
	if l.kept.Len()+len(p) > commandBytes {
		l.over = true
		l.stop()
		return 0, io.ErrShortWrite
	}
	return l.kept.Write(p)
}

// split cuts a command line into words at blanks. In a line within double
// quotes, single quotes keep words together, and either quote written twice
// stands for itself. No shell is asked, so nothing else has a meaning.
func split(command string) ([]string, error) {
	command = strings.TrimSpace(command)
	inner, quoted := strings.CutPrefix(command, `"`)
	if !quoted {
		words := strings.Fields(command)
		if len(words) == 0 {
			return nil, errors.New("there is no command")
		}
		return words, nil
	}
	inner, closed := strings.CutSuffix(inner, `"`)
	if !closed {
		return nil, errors.New("the double quote of the command is not closed")
	}
	var words []string
	var word strings.Builder
	inWord, inQuote := false, false
	for i := 0; i < len(inner); i++ {
		c := inner[i]
		twice := i+1 < len(inner) && inner[i+1] == c
		switch {
		case c == '"' && twice, c == '\'' && inQuote && twice:
			word.WriteByte(c)
			i++
			inWord = true
		case c == '\'':
			inQuote, inWord = !inQuote, true
		case (c == ' ' || c == '\t') && !inQuote:
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	switch {
	case inQuote:
		return nil, errors.New("a single quote of the command is not closed")
	case len(words) == 0 || words[0] == "":
		return nil, errors.New("there is no command")
	}
	return words, nil
}
