// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// body is what is left to read of one record.
type body struct {
	head  string   // the text behind the header
	lines []string // the lines that follow
	pos   int      // of the next of lines
	first int      // line number of the header
}

// bad is the error for the line at pos (-1 is the header line).
func (b *body) bad(pos int, want string) error {
	text := b.head
	if pos >= len(b.lines) {
		text = endMark
	} else if pos >= 0 {
		text = b.lines[pos]
	}
	return &BadRecord{Line: b.first + 1 + pos, Text: text, Msg: "expected " + want}
}

// next returns the next line; ok is false at the end.
func (b *body) next() (line string, ok bool) {
	if b.pos >= len(b.lines) {
		return "", false
	}
	b.pos++
	return b.lines[b.pos-1], true
}

// take returns the rest of the next line if it starts with prefix.
func (b *body) take(prefix string) (string, bool) {
	if b.pos < len(b.lines) {
		if rest, ok := strings.CutPrefix(b.lines[b.pos], prefix); ok {
			b.pos++
			return rest, true
		}
	}
	return "", false
}

// parse reads the header line and then the event's own lines.
func (r *Reader) parse(lines []string, first int) (Record, error) {
	rec := Record{Line: first}
	b := body{head: lines[0], lines: lines[1:], first: first}
	code, rest, ok := strings.Cut(lines[0], " (")
	if !ok || len(code) != 3 || !isDigits(code) {
		return rec, b.bad(-1, "a record that starts like 005 (001.000.000)")
	}
	id, rest, ok := strings.Cut(rest, ") ")
	ids := strings.Split(id, ".")
	if !ok || len(ids) != 3 {
		return rec, b.bad(-1, "a job id like (001.000.000)")
	}
	for i, to := range []*int{&rec.Cluster, &rec.Proc, &rec.Subproc} {
		n, err := strconv.ParseInt(ids[i], 10, 32)
		if err != nil {
			return rec, b.bad(-1, "a job id like (001.000.000)")
		}
		*to = int(n)
	}
	var err error
	if rec.Time, b.head, err = r.parseTime(rest); err != nil {
		return rec, b.bad(-1, err.Error())
	}
	number, err := strconv.Atoi(code)
	if err != nil {
		return rec, b.bad(-1, "an event number")
	}
	rec.Event, err = b.event(Code(number))
	return rec, err
}

// parseTime reads "2026-11-20 14:00:56 " (also with T, milliseconds and Z) or
// the old "11/20 14:00:56 ", and returns what follows.
func (r *Reader) parseTime(text string) (time.Time, string, error) {
	date, rest, _ := strings.Cut(text, " ")
	clock := ""
	if d, c, ok := strings.Cut(date, "T"); ok {
		date, clock = d, c
	} else {
		clock, rest, _ = strings.Cut(rest, " ")
	}
	loc := r.opts.Location
	if c, ok := strings.CutSuffix(clock, "Z"); ok {
		clock, loc = c, time.UTC
	}
	if strings.Count(date, "/") == 1 {
		if r.opts.Year == 0 {
			return time.Time{}, "", fmt.Errorf("a date with a year (%s has none and no year was given)", date)
		}
		date = fmt.Sprintf("%04d-%s", r.opts.Year, strings.ReplaceAll(date, "/", "-"))
	}
	t, err := time.ParseInLocation(timeLayout, date+" "+clock, loc)
	if err != nil {
		return t, "", fmt.Errorf("a time like 2026-11-20 14:00:56")
	}
	return t, rest, nil
}

// event reads the event with the given number. Lines a later HTCondor may have
// added at the end of an event are passed over.
func (b *body) event(code Code) (Event, error) {
	switch code {
	case CodeSubmit:
		return b.submit()
	case CodeExecute:
		return b.execute()
	case CodeExecutableError:
		var e ExecutableError
		if _, err := fmt.Sscanf(b.head, "(%d)", &e.Kind); err != nil {
			return nil, b.bad(-1, "a number in parentheses")
		}
		return e, nil
	case CodeEvicted:
		return b.evicted()
	case CodeTerminated:
		return b.terminated()
	case CodeImageSize:
		return b.imageSize()
	case CodeShadowException:
		e := ShadowException{}
		e.Message, _ = b.next()
		e.Message = strings.TrimPrefix(e.Message, "\t")
		e.Sent, _ = b.count("Run Bytes Sent By Job")
		e.Received, _ = b.count("Run Bytes Received By Job")
		return e, b.headIs("Shadow exception!")
	case CodeGeneric:
		return Generic{b.head}, nil
	case CodeAborted:
		if !strings.HasPrefix(b.head, "Job was aborted") {
			return nil, b.bad(-1, "Job was aborted.")
		}
		return Aborted{b.reason()}, nil
	case CodeSuspended:
		e := Suspended{}
		n, ok := b.take("\tNumber of processes actually suspended: ")
		var err error
		if e.Processes, err = strconv.Atoi(n); !ok || err != nil {
			return nil, b.bad(0, "Number of processes actually suspended: N")
		}
		return e, b.headIs("Job was suspended.")
	case CodeUnsuspended:
		return Unsuspended{}, b.headIs("Job was unsuspended.")
	case CodeHeld:
		e := Held{Reason: b.reason()}
		if e.Reason == noReason {
			e.Reason = ""
		}
		e.ReasonCode, e.ReasonSubcode, _ = b.codes()
		return e, b.headIs("Job was held.")
	case CodeReleased:
		return Released{b.reason()}, b.headIs("Job was released.")
	case CodeRemoteError:
		return b.remoteError()
	case CodeDisconnected, CodeReconnected, CodeReconnectFailed:
		return b.connection(code)
	case CodeAttributeUpdate:
		return b.attributeUpdate()
	case CodeFileTransfer:
		return b.fileTransfer()
	}
	return Other{Number: code, Head: b.head, Lines: b.lines}, nil
}

func (b *body) headIs(want string) error {
	if b.head != want {
		return b.bad(-1, want)
	}
	return nil
}

// reason is an optional indented line.
func (b *body) reason() string {
	line, _ := b.next()
	return strings.TrimSpace(line)
}

// codes reads an optional line "Code N Subcode M".
func (b *body) codes() (code, subcode int, ok bool) {
	rest, ok := b.take("\tCode ")
	if !ok {
		return 0, 0, false
	}
	code, subcode, ok = parseCodes("Code " + rest)
	if !ok {
		b.pos--
	}
	return code, subcode, ok
}

func parseCodes(text string) (code, subcode int, ok bool) {
	text, ok = strings.CutPrefix(text, "Code ")
	c, s, ok2 := strings.Cut(text, " Subcode ")
	code, err1 := strconv.Atoi(c)
	subcode, err2 := strconv.Atoi(s)
	return code, subcode, ok && ok2 && err1 == nil && err2 == nil
}

func (b *body) submit() (Event, error) {
	host, ok := strings.CutPrefix(b.head, "Job submitted from host: ")
	if !ok {
		return nil, b.bad(-1, "Job submitted from host: ADDRESS")
	}
	e := Submit{Host: host}
	for n := 0; ; n++ {
		line, ok := b.next()
		if !ok {
			return e, nil
		}
		line = strings.TrimPrefix(line, "    ")
		if w, ok := strings.CutPrefix(line, submitWarning); ok {
			e.Warning = w
		} else if n == 0 {
			e.LogNotes = line
		} else if n == 1 {
			e.UserNotes = line
		}
	}
}

func (b *body) execute() (Event, error) {
	host, ok := strings.CutPrefix(b.head, "Job executing on host: ")
	if !ok {
		return nil, b.bad(-1, "Job executing on host: ADDRESS")
	}
	e := Execute{Host: host}
	e.SlotName, _ = b.take("\tSlotName: ")
	for {
		line, ok := b.next()
		if !ok {
			return e, nil
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "\t"), " = ")
		if !ok || name == "" {
			return nil, b.bad(b.pos-1, "Name = Value")
		}
		e.Props = append(e.Props, Property{name, value})
	}
}

// usage reads one line of processor time.
func (b *body) usage(what string) (Usage, error) {
	line, ok := b.next()
	if ok {
		var u, s [4]int64
		_, err := fmt.Sscanf(strings.TrimLeft(line, "\t"), "Usr %d %d:%d:%d, Sys %d %d:%d:%d",
			&u[0], &u[1], &u[2], &u[3], &s[0], &s[1], &s[2], &s[3])
		user, ok1 := dayClock(u)
		system, ok2 := dayClock(s)
		if err == nil && ok1 && ok2 && strings.HasSuffix(line, "  -  "+what+" Usage") {
			return Usage{user, system}, nil
		}
		b.pos--
	}
	return Usage{}, b.bad(b.pos, "Usr D HH:MM:SS, Sys D HH:MM:SS  -  "+what+" Usage")
}

func dayClock(p [4]int64) (time.Duration, bool) {
	if p[0] < 0 || p[0] > 100000 || p[1] < 0 || p[1] > 23 || p[2] < 0 || p[2] > 59 || p[3] < 0 || p[3] > 59 {
		return 0, false
	}
	return time.Duration(((p[0]*24+p[1])*60+p[2])*60+p[3]) * time.Second, true
}

// count reads an optional line "N  -  what".
func (b *body) count(what string) (int64, bool) {
	if b.pos < len(b.lines) {
		if n, ok := strings.CutSuffix(b.lines[b.pos], "  -  "+what); ok {
			if v, err := strconv.ParseInt(strings.TrimSpace(n), 10, 64); err == nil {
				b.pos++
				return v, true
			}
		}
	}
	return 0, false
}

func (b *body) exit() (Exit, error) {
	var x Exit
	at := b.pos
	line, _ := b.next()
	if n, ok := strings.CutPrefix(line, "\t(1) Normal termination (return value "); ok {
		status, err := strconv.Atoi(strings.TrimSuffix(n, ")"))
		if x.Status = status; err == nil {
			return x, nil
		}
	} else if n, ok := strings.CutPrefix(line, "\t(0) Abnormal termination (signal "); ok {
		signal, err := strconv.Atoi(strings.TrimSuffix(n, ")"))
		if x.Signal = signal; err == nil && signal > 0 {
			if core, ok := b.take("\t(1) Corefile in: "); ok {
				x.CoreFile = core
			} else if _, ok := b.take("\t(0) No core file"); !ok {
				return x, b.bad(b.pos, "a line about the core file")
			}
			return x, nil
		}
	}
	return x, b.bad(at, "(1) Normal termination (return value N) or (0) Abnormal termination (signal N)")
}

func (b *body) resources() ([]Resource, error) {
	if b.pos >= len(b.lines) || !strings.HasPrefix(b.lines[b.pos], "\tPartitionable ") {
		return nil, nil
	}
	table, ok := newTableReader(b.lines[b.pos])
	if !ok {
		return nil, b.bad(b.pos, "the titles Usage, Request and Allocated")
	}
	var list []Resource
	for b.pos++; b.pos < len(b.lines); b.pos++ {
		r, ok := table.row(b.lines[b.pos])
		if !ok {
			break
		}
		list = append(list, r)
	}
	return list, nil
}

func (b *body) evicted() (Event, error) {
	var e Evicted
	rest, ok := strings.CutPrefix(b.head, "Job was evicted.")
	if !ok {
		return nil, b.bad(-1, "Job was evicted.")
	}
	if rest != "" {
		if e.ReasonCode, e.ReasonSubcode, ok = parseCodes(strings.TrimSpace(rest)); !ok {
			return nil, b.bad(-1, "Job was evicted. Code N Subcode M")
		}
	}
	how, _ := b.next()
	switch how {
	case "\t(0) Job terminated and was requeued":
		e.Requeued = &Exit{}
	case "\t(1) Job was checkpointed.":
		e.Checkpointed = true
	case "\t(0) CPU times", "\t(0) Job was not checkpointed.":
	default:
		return nil, b.bad(0, "(0) CPU times")
	}
	var err error
	if e.Remote, err = b.usage("Run Remote"); err != nil {
		return nil, err
	}
	if e.Local, err = b.usage("Run Local"); err != nil {
		return nil, err
	}
	e.Sent, _ = b.count("Run Bytes Sent By Job")
	e.Received, _ = b.count("Run Bytes Received By Job")
	if e.Requeued != nil {
		if *e.Requeued, err = b.exit(); err != nil {
			return nil, err
		}
	}
	if b.pos < len(b.lines) && !strings.HasPrefix(b.lines[b.pos], "\tPartitionable ") {
		line, _ := b.next()
		e.Reason = strings.TrimPrefix(line, "\t")
		if e.Requeued == nil {
			e.Reason = strings.TrimPrefix(e.Reason, "Reason: ")
		}
	}
	e.Resources, err = b.resources()
	return e, err
}

func (b *body) terminated() (Event, error) {
	var e Terminated
	err := b.headIs("Job terminated.")
	if err == nil {
		e.Exit, err = b.exit()
	}
	for _, u := range []struct {
		to   *Usage
		what string
	}{{&e.Remote, "Run Remote"}, {&e.Local, "Run Local"}, {&e.TotalRemote, "Total Remote"}, {&e.TotalLocal, "Total Local"}} {
		if err == nil {
			*u.to, err = b.usage(u.what)
		}
	}
	if err != nil {
		return nil, err
	}
	e.Sent, _ = b.count("Run Bytes Sent By Job")
	e.Received, _ = b.count("Run Bytes Received By Job")
	e.TotalSent, _ = b.count("Total Bytes Sent By Job")
	e.TotalReceived, _ = b.count("Total Bytes Received By Job")
	e.Resources, err = b.resources()
	return e, err
}

func (b *body) imageSize() (Event, error) {
	e := ImageSize{MemoryUsage: -1, ResidentSetSize: -1}
	n, ok := strings.CutPrefix(b.head, "Image size of job updated: ")
	size, err := strconv.ParseInt(n, 10, 64)
	if e.Size = size; !ok || err != nil {
		return nil, b.bad(-1, "Image size of job updated: N")
	}
	if v, ok := b.count("MemoryUsage of job (MB)"); ok {
		e.MemoryUsage = v
	}
	if v, ok := b.count("ResidentSetSize of job (KB)"); ok {
		e.ResidentSetSize = v
	}
	if v, ok := b.count("ProportionalSetSize of job (KB)"); ok {
		e.ProportionalSetSize = v
	}
	return e, nil
}

func (b *body) remoteError() (Event, error) {
	var e RemoteError
	what, rest, ok := strings.Cut(strings.TrimSuffix(b.head, ":"), " from ")
	e.Message = what != "Error"
	var ok2 bool
	e.Daemon, e.Host, ok2 = strings.Cut(rest, " on ")
	if !ok || !ok2 {
		return nil, b.bad(-1, "Error from DAEMON on HOST:")
	}
	var text []string
	for b.pos < len(b.lines) {
		if b.pos == len(b.lines)-1 {
			if e.ReasonCode, e.ReasonSubcode, ok = b.codes(); ok {
				break
			}
		}
		line, _ := b.next()
		text = append(text, strings.TrimPrefix(line, "\t"))
	}
	e.Text = strings.Join(text, "\n")
	return e, nil
}

// connection reads the three events about the connection to the starter.
func (b *body) connection(code Code) (Event, error) {
	line := func(prefix string) (string, bool) { return b.take("    " + prefix) }
	switch code {
	case CodeDisconnected:
		var e Disconnected
		var ok1, ok2, ok3 bool
		e.Reason, ok1 = line("")
		var where string
		where, ok2 = line("Trying to reconnect to ")
		e.StartdName, e.StartdAddr, ok3 = strings.Cut(where, " ")
		if !ok1 || !ok2 || !ok3 {
			return nil, b.bad(min(b.pos, 1), "a reason, then: Trying to reconnect to NAME ADDRESS")
		}
		return e, b.headIs("Job disconnected, attempting to reconnect")
	case CodeReconnected:
		var e Reconnected
		var ok1, ok2, ok3 bool
		e.StartdName, ok1 = strings.CutPrefix(b.head, "Job reconnected to ")
		e.StartdAddr, ok2 = line("startd address: ")
		e.StarterAddr, ok3 = line("starter address: ")
		if !ok1 || !ok2 || !ok3 {
			return nil, b.bad(min(b.pos, 1), "the name of the slot and the addresses of startd and starter")
		}
		return e, nil
	}
	var e ReconnectFailed
	var ok1, ok2, ok3 bool
	e.Reason, ok1 = line("")
	e.StartdName, ok2 = line("Can not reconnect to ")
	e.StartdName, ok3 = strings.CutSuffix(e.StartdName, ", rescheduling job")
	if !ok1 || !ok2 || !ok3 {
		return nil, b.bad(min(b.pos, 1), "a reason, then: Can not reconnect to NAME, rescheduling job")
	}
	return e, b.headIs("Job reconnection failed")
}

func (b *body) attributeUpdate() (Event, error) {
	var e AttributeUpdate
	ok, ok2 := false, false
	if rest, old := strings.CutPrefix(b.head, "Changing job attribute "); old {
		e.Name, rest, ok = strings.Cut(rest, " from ")
		e.OldValue, e.Value, ok2 = strings.Cut(rest, " to ")
	} else if rest, ok = strings.CutPrefix(b.head, "Setting job attribute "); ok {
		e.Name, e.Value, ok2 = strings.Cut(rest, " to ")
	}
	if !ok || !ok2 {
		return nil, b.bad(-1, "Setting job attribute NAME to VALUE")
	}
	return e, nil
}

func (b *body) fileTransfer() (Event, error) {
	var e FileTransfer
	for step, text := range transferTexts {
		if text != "" && text == b.head {
			e.Step = TransferStep(step)
		}
	}
	if e.Step == 0 {
		return nil, b.bad(-1, "a step of file transfer such as: "+transferTexts[InputStarted])
	}
	if n, ok := b.take("\tSeconds spent in queue: "); ok {
		s, err := strconv.ParseInt(n, 10, 32)
		if err != nil {
			return nil, b.bad(b.pos-1, "a number of seconds")
		}
		e.Queued, e.QueueDelay = true, time.Duration(s)*time.Second
	}
	e.Host, _ = b.take("\tTransferring to host: ")
	return e, nil
}
