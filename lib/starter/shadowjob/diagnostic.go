// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/starter/plugins"
	"github.com/execpoint/execpoint/lib/transfer"
)

// A diagnostic is a program of the machine's owner, STARTER_DIAGNOSTIC_<name>, whose
// output the access point is sent: the AP names it, the owner says what it is. It runs
// as the job's user in the scratch directory, with _CONDOR_STARTER_PID in its
// environment, for at most 20 s. send_ep_logs is the only one that a shadow asks for,
// when input did not come and will not come: HTCondor's program prints what StarterLog
// has of this starter. Where the owner has set no program the starter prints that
// itself.
const (
	epLogs         = "send_ep_logs"
	diagnosticTime = 20 * time.Second
	// mostOfLog bounds what of StarterLog is sent. The end is kept: it says why.
	mostOfLog = 256 << 10
)

// diagnose runs a diagnostic and returns the event that tells of it: Result, and
// unless that is an error ExitStatus and Contents in base64.
func (j *Job) diagnose(ctx context.Context, which string) *classad.Ad {
	ad := classad.NewAd()
	ad.SetString("EventType", "DiagnosticResult")
	ad.SetString("Diagnostic", which)
	program := j.Plan.Settings.Pool.Guidance.EPLogs
	switch {
	case which != epLogs:
		j.Log.Info(fmt.Sprintf("... diagnostic '%.100s' not registered in param table (STARTER_DIAGNOSTIC_%.100[1]s).", which))
		ad.SetString("Result", "Error - Unregistered")
		return ad
	case program == "":
		j.diagnosed(ad, transfer.PluginExit{Output: j.ownLog()})
		return ad
	}
	if _, err := os.Stat(program); err != nil {
		j.Log.Warn("a diagnostic cannot be run: set STARTER_DIAGNOSTIC_send_ep_logs to a program, or to nothing", "path", program, "err", err)
		ad.SetString("Result", "Error - specified path does not exist")
		return ad
	}
	exit, err := plugins.Runner(j.Spawner, j.place.User, j.Env)(ctx, transfer.PluginSpec{
		Path: program, Args: []string{program}, Dir: j.place.Box.Scratch(), Timeout: diagnosticTime,
		Env: []string{fmt.Sprintf("_CONDOR_STARTER_PID=%d", os.Getpid())},
	})
	switch {
	case err != nil:
		j.Log.Warn("a diagnostic cannot be run", "path", program, "err", err)
		ad.SetString("Result", "Error - could not be started")
	case exit.TimedOut:
		ad.SetString("Result", "Error - Timed Out")
	default:
		j.diagnosed(ad, exit)
	}
	return ad
}

// diagnosed notes a diagnostic that has run to its end.
func (j *Job) diagnosed(ad *classad.Ad, exit transfer.PluginExit) {
	ad.SetString("Result", "Completed")
	ad.SetInt("ExitStatus", int64(exit.Code<<8|exit.Signal))
	ad.SetString("Contents", base64.StdEncoding.EncodeToString(exit.Output))
}

// ownLog is what HTCondor's program prints, of this starter. This process has no
// second log in the sandbox.
func (j *Job) ownLog() []byte {
	var out bytes.Buffer
	out.WriteString("\nglobal starter log begins ---\n\n")
	if p := j.Plan.Log; p != nil && p.Path != "" {
		if f, err := os.Open(p.Path); err == nil {
			out.Write(linesOf(f, os.Getpid(), mostOfLog))
			_ = f.Close()
		} else {
			fmt.Fprintf(&out, "%v\n", err)
		}
	}
	out.WriteString("\n---- global starter log ends; local starter log begins ---\n\n\n---- local starter log ends\n\n")
	return out.Bytes()
}

// linesOf returns the last lines, of most bytes together, that the starter with that
// pid has written into a log: those from the last "** PID = pid" on, up to the next
// starter's. Starters of one slot write one file, one after the other.
func linesOf(log io.Reader, pid, most int) []byte {
	const mark = "** PID = "
	var kept []byte
	ours := false
	in := bufio.NewReader(log)
	for {
		line, err := in.ReadSlice('\n') // a longer line comes in pieces
		if i := bytes.Index(line, []byte(mark)); i >= 0 {
			if ours = strings.TrimSpace(string(line[i+len(mark):])) == fmt.Sprint(pid); ours {
				kept = kept[:0]
			}
		}
		if ours {
			kept = append(kept, line...)
			if len(kept) > 2*most {
				kept = append(kept[:0], lastLines(kept, most)...)
			}
		}
		if err != nil && err != bufio.ErrBufferFull {
			return lastLines(kept, most)
		}
	}
}

// lastLines is the end of text from the beginning of a line on, of at most most bytes.
func lastLines(text []byte, most int) []byte {
	if len(text) <= most {
		return text
	}
	text = text[len(text)-most:]
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return text[i+1:]
	}
	return text
}
