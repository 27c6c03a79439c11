// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package localuniverse

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/eventlog"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/job"
)

// eventLogs are the logs of a job: its own (UserLog), and that of the workflow which
// it is a node of (DAGManNodesLog), with the events that DAGMan asks for.
type eventLogs []eventLog

type eventLog struct {
	to   *eventlog.Writer
	only map[eventlog.Code]bool // nil is all
}

// openLogs opens the logs that the job's ad names, with the rights of u by access; nil
// is the process's own user.
func openLogs(ad *classad.Ad, u *host.Identity, access host.Access) (logs eventLogs, err error) {
	const op = "localuniverse.openLogs"
	if xml, _ := ad.EvalBool("UserLogUseXML", nil); xml {
		return nil, errs.E(op, errs.Unsupported, "UserLogUseXML", errors.New("an event log in XML is not written"))
	}
	iwd, _ := ad.EvalString("Iwd", nil)
	for _, attr := range [...]string{"UserLog", "DAGManNodesLog"} {
		name, _ := ad.EvalString(attr, nil)
		if name == "" || name == os.DevNull {
			continue
		}
		to, err := openAs(job.Under(iwd, name), u, access)
		if err != nil {
			logs.close()
			return nil, err
		}
		log := eventLog{to: to}
		if mask, ok := ad.EvalString("DAGManNodesMask", nil); ok && attr == "DAGManNodesLog" {
			log.only = codesOf(mask)
		}
		logs = append(logs, log)
	}
	return logs, nil
}

// codesOf reads a list of numbers of events.
func codesOf(mask string) map[eventlog.Code]bool {
	only := make(map[eventlog.Code]bool)
	for _, text := range strings.FieldsFunc(mask, func(r rune) bool { return r == ',' || r == ' ' }) {
		if n, err := strconv.Atoi(text); err == nil {
			only[eventlog.Code(n)] = true
		}
	}
	return only
}

func openAs(path string, u *host.Identity, access host.Access) (*eventlog.Writer, error) {
	if u == nil {
		return eventlog.Open(path)
	}
	f, err := access.Append(u, path)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = access.Overwrite(u, path)
	}
	if err != nil {
		return nil, err
	}
	return eventlog.NewWriter(f), nil // the file is closed with the process
}

// write writes an event to each log that wants it.
func (l eventLogs) write(h eventlog.Header, event eventlog.Event) error {
	var bad error
	for _, log := range l {
		if log.only == nil || log.only[event.Code()] {
			bad = errors.Join(bad, log.to.Write(h, event))
		}
	}
	return bad
}

func (l eventLogs) close() {
	for _, log := range l {
		_ = log.to.Close() // each event was one write
	}
}
