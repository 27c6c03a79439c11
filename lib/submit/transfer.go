// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// transfer sets which files go with the job and come back, and when.
func (b *builder) transfer() {
	input, hasInput := b.fileList("transfer_input_files", "TransferInputFiles")
	output, hasOutput := b.fileList("transfer_output_files", "TransferOutputFiles")

	should, given := b.choice([]string{"YES", "NO", "IF_NEEDED"}, "should_transfer_files", "ShouldTransferFiles")
	byUser := given
	if !given {
		if text := strings.ToUpper(b.d.opts.Config("SUBMIT_DEFAULT_SHOULD_TRANSFER_FILES")); slices.Contains([]string{"YES", "NO", "IF_NEEDED"}, text) {
			should = text
		} else {
			should = "IF_NEEDED"
		}
	}
	shouldAt := b.value
	when, whenGiven := b.choice([]string{"ON_EXIT", "ON_EXIT_OR_EVICT", "ON_SUCCESS", "NEVER"}, "when_to_transfer_output", "WhenToTransferOutput")
	if !whenGiven {
		when = "ON_EXIT"
		if should == "NO" {
			when = "NEVER"
		}
	}
	if !byUser && when == "ON_EXIT_OR_EVICT" && should == "IF_NEEDED" {
		should = "YES"
	}
	switch {
	case should == "NO" && (hasInput || hasOutput):
		b.value = shouldAt
		b.badOrQueue(given, Problem{Value: should, Message: "files to transfer are named but no files shall be transferred", Want: "YES, or no transfer_input_files and transfer_output_files"})
		return
	case should == "NO" && when != "NEVER", should != "NO" && when == "NEVER":
		b.bad(0, Problem{Value: when, Message: "this contradicts should_transfer_files = " + should, Want: "one of the two changed"})
		return
	case should == "IF_NEEDED" && when == "ON_EXIT_OR_EVICT":
		b.bad(0, Problem{Value: when, Message: "this cannot be combined with should_transfer_files = IF_NEEDED", Want: "should_transfer_files = YES, or ON_EXIT"})
		return
	case should == "NO":
		if _, ok := b.get("transfer_executable", "TransferExecutable"); ok && b.boolean(false, "transfer_executable", "TransferExecutable") {
			b.bad(0, Problem{Message: "the executable shall be transferred but no files shall be", Want: "should_transfer_files = YES"})
			return
		}
	}
	b.setString("ShouldTransferFiles", should)
	if should != "NO" {
		b.setString("WhenToTransferOutput", when)
		if hasInput {
			b.setString("TransferInput", strings.Join(input, ","))
		}
		if hasOutput {
			b.setString("TransferOutput", strings.Join(output, ","))
		}
	}
	if should != "YES" {
		if domain := b.d.opts.Config("FILESYSTEM_DOMAIN"); domain != "" {
			b.setString("FileSystemDomain", domain)
		} else if b.d.opts.Host != "" {
			b.setString("FileSystemDomain", b.d.opts.Host)
		}
	}
	if remaps, ok := b.get("transfer_output_remaps", "TransferOutputRemaps"); ok {
		if remaps = unquote(remaps); b.checkRemaps(remaps) {
			b.setString("TransferOutputRemaps", remaps)
		}
	}
	b.diskUsage(input)
}

// badOrQueue reports a mistake at the command looked at last, or at the queue
// statement when no command stands for it.
func (b *builder) badOrQueue(given bool, pr Problem) {
	if given {
		b.bad(0, pr)
		return
	}
	if !b.tentative {
		pr.File, pr.Line, pr.Column, pr.Command = b.d.name, b.queueLine(), 1, "queue"
		b.fail(pr)
	}
}

// fileList reads a list of files between commas. An empty list in quotes is a
// list too.
func (b *builder) fileList(names ...string) ([]string, bool) {
	text, ok := b.get(names...)
	if !ok {
		return nil, false
	}
	var list []string
	for name := range strings.SplitSeq(unquote(text), ",") {
		name = strings.Trim(name, blanks)
		switch {
		case name == "":
		case isURL(name):
			b.bad(0, Problem{Value: name, Message: "transfer of URLs is not supported", Want: "a file", Kind: errs.Unsupported})
		default:
			list = append(list, name)
		}
	}
	return list, true
}

// choice reads a command that has one of a few words, in any case.
func (b *builder) choice(words []string, names ...string) (string, bool) {
	text, ok := b.get(names...)
	if !ok {
		return "", false
	}
	up := strings.ToUpper(text)
	if !slices.Contains(words, up) {
		b.bad(0, Problem{Value: text, Message: "this is not one of the words allowed", Want: strings.Join(words, ", ")})
		return words[0], true
	}
	return up, true
}

// checkRemaps looks at "name = new ; name = new". A backslash protects ; = and
// itself.
func (b *builder) checkRemaps(remaps string) bool {
	for _, part := range splitEscaped(remaps, ';') {
		if strings.Trim(part, blanks) == "" {
			continue
		}
		sides := splitEscaped(part, '=')
		if len(sides) != 2 || strings.Trim(sides[0], blanks) == "" || strings.Trim(sides[1], blanks) == "" {
			b.bad(0, Problem{Value: part, Message: "this is no renaming", Want: "NAME = NEW; NAME = NEW"})
			return false
		}
		if isURL(strings.Trim(sides[1], blanks)) {
			b.bad(0, Problem{Value: part, Message: "transfer to URLs is not supported", Want: "a file", Kind: errs.Unsupported})
			return false
		}
	}
	return true
}

// splitEscaped parts text at sep, not where a backslash stands before it.
func splitEscaped(text string, sep byte) []string {
	var parts []string
	from := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case sep:
			parts = append(parts, text[from:i])
			from = i + 1
		}
	}
	return append(parts, text[from:])
}

// diskUsage sets the first guess of the disk the job needs: its executable,
// its input files and its standard input.
func (b *builder) diskUsage(input []string) {
	total := int64(0)
	if e := b.expr("ExecutableSize"); e != nil {
		total, _ = e.Eval(nil).AsInt()
	}
	for _, name := range input {
		total += b.d.fileKiB(fullPath(b.iwd, name))
	}
	if e := b.expr("In"); e != nil {
		if in, _ := e.Eval(nil).AsString(); in != nullFile {
			total += b.d.fileKiB(fullPath(b.iwd, in))
		}
	}
	b.setInt("TransferInputSizeMB", (total+1023)/1024)
	if text, ok := b.get("disk_usage", "DiskUsage"); ok {
		n, ok := quantity(text, kib)
		if !ok || n < 1 {
			b.bad(0, Problem{Value: text, Message: "this is no size", Want: "a number above 0, in KiB or with K, M, G or T"})
		}
		total = n
	}
	b.setInt("DiskUsage", total)
}

// transferClause adds to the requirements what the way of transfer needs.
func (b *builder) transferClause(add func(clause string, mentions ...string), refs map[string]bool) {
	should := "IF_NEEDED"
	if e := b.expr("ShouldTransferFiles"); e != nil {
		should, _ = e.Eval(nil).AsString()
	}
	const sameFiles = "(TARGET.FileSystemDomain == MY.FileSystemDomain)"
	switch {
	case strings.EqualFold(should, "NO"):
		add(sameFiles, "filesystemdomain")
	case refs["hasfiletransfer"]:
	case strings.EqualFold(should, "IF_NEEDED") && !refs["filesystemdomain"]:
		add("(" + sameFiles + " || (TARGET.HasFileTransfer))")
	default:
		add("(TARGET.HasFileTransfer)")
	}
}
