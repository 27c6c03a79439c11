// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// maxAnswer is how much a hook may print of a job's ad.
const maxAnswer = 1 << 20

// Ask runs a program that gets input on its standard input, and answers on its standard
// output, of which 1 MiB is read: a program that prints more is ended. spec says as whom
// it runs, and where; its standard files and its Marker are set here, and its Env gets
// what tells the program's processes apart. When ctx ends, so does its family, at once
// and by force; what the program leaves behind is ended too. The error says that it could
// not be started, and nothing else does: the Report has its Status, and in Err why it was
// ended.
func (r *Runner) Ask(ctx context.Context, name string, spec host.SpawnSpec, input string) (*Run, error) {
	in, inEnd, err := os.Pipe()
	if err != nil {
		return nil, errs.E("hook.Ask", errs.Exhausted, name, err)
	}
	var tooMuch error
	run := &Run{runner: r, done: make(chan struct{}), report: Report{Job: name}}
	read := collect(&run.report.Output, maxAnswer)
	spec.Stdin, spec.Env = in, r.environ(spec.Env)
	err = r.start(ctx, run, spec, func(piece []byte) error {
		if read(piece) != nil {
			tooMuch = errs.E("hook.Ask", errs.Invalid, name, fmt.Errorf("%s printed more than %d bytes and was ended", spec.Path, maxAnswer))
		}
		return tooMuch
	}, func() { run.report.Err = errors.Join(tooMuch, run.report.Err) })
	if err != nil {
		in.Close()
		inEnd.Close()
		return nil, err
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = inEnd.WriteString(input) // a program need not read what it is given
		_ = inEnd.Close()
	}()
	go func() {
		<-run.done
		_ = inEnd.Close() // ends the writing
		<-written
		_ = in.Close()
	}()
	return run, nil
}
