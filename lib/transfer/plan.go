// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// devNull is how ads spell that a standard file is not wanted.
const devNull = "/dev/null"

// Wanted reports whether the files of job are moved at all, when the submit
// directory can be reached from here: ShouldTransferFiles is YES. IF_NEEDED is
// not, for then it is not needed.
func Wanted(job *classad.Ad) bool {
	word, _ := job.EvalString("ShouldTransferFiles", nil)
	return strings.EqualFold(strings.TrimSpace(word), "YES")
}

// IfNeeded reports whether the files of job are moved where its user is not the
// one whose submit directory it is, and may not be able to work there:
// ShouldTransferFiles is IF_NEEDED.
func IfNeeded(job *classad.Ad) bool {
	word, _ := job.EvalString("ShouldTransferFiles", nil)
	return strings.EqualFold(strings.TrimSpace(word), "IF_NEEDED")
}

// SubmitSide calls f, which deals with path of the submit side, with the rights
// that are good for that. f is called by whichever goroutine has them. nil is to
// call it as it is.
type SubmitSide func(path string, f func() error) error

func (s SubmitSide) do(path string, f func() error) error {
	if s == nil {
		return f()
	}
	return s(path, f)
}

// Item is one file or directory on its way into the scratch directory.
type Item struct {
	Source     string // absolute path
	Name       string // in the scratch directory; "" for the contents of a directory
	Executable bool   // its x bits are set on arrival
}

// Input is what goes into the scratch directory.
type Input struct {
	Items []Item
	// Submit is with whose rights the items are read.
	Submit SubmitSide
}

// InputOf reads from job what it needs: its executable, its standard input,
// transfer_input_files and its proxy, each unless the job says that it is not to be moved.
// Relative names are below iwd.
func InputOf(job *classad.Ad, iwd string) (Input, error) {
	var in Input
	add := func(name string, executable bool) error {
		if strings.Contains(name, "://") {
			return errs.E("transfer.InputOf", errs.Unsupported, name, errors.New("no transfer plugin for this kind of URL"))
		}
		source := under(iwd, name)
		item := Item{Source: source, Name: filepath.Base(source), Executable: executable}
		if strings.HasSuffix(name, "/") {
			item.Name = "" // the directory's contents
		}
		in.Items = append(in.Items, item)
		return nil
	}
	if cmd, ok := job.EvalString("Cmd", nil); ok && cmd != "" && flag(job, "TransferExecutable", true) {
		if err := add(cmd, true); err != nil {
			return Input{}, err
		}
	}
	if stdin, ok := job.EvalString("In", nil); ok && stdin != "" && stdin != devNull && flag(job, "TransferIn", true) {
		if err := add(stdin, false); err != nil {
			return Input{}, err
		}
	}
	list, _ := job.EvalString("TransferInput", nil)
	files := names(list)
	if proxy, _ := job.EvalString("x509userproxy", nil); ProxyName(job) != "" && !slices.Contains(files, proxy) {
		files = append(files, proxy)
	}
	for _, name := range files {
		if err := add(name, false); err != nil {
			return Input{}, err
		}
	}
	return in, nil
}

// Output is what comes back from the scratch directory.
type Output struct {
	Iwd    string            // where relative destinations are
	Listed bool              // Names is what the job asked for; otherwise whatever is new or changed
	Names  []string          // files or directories in the scratch directory
	Remaps map[string]string // destination by the name in the scratch directory
	Std    []Std             // the standard files
	Quiet  map[string]bool   // names in the scratch directory that are not sent unless they are listed
	// Submit is with whose rights the files are put in place. Guarded says that
	// those are more than the job's user has: then a file gets no mode by which
	// others could change it.
	Submit  SubmitSide
	Guarded bool
	// Progress is told about bytes of files as they are copied; nil is none.
	Progress func(bytes int64)
}

// Std is a standard file that has its own name in the scratch directory.
type Std struct {
	Name string // in the scratch directory
	Dest string // absolute
}

// OutputOf reads from job what it wants back: transfer_output_files if it
// lists any (an empty list is nothing), else what is new or changed, under the
// names that transfer_output_remaps gives them.
func OutputOf(job *classad.Ad, iwd string) (Output, error) {
	out := Output{Iwd: iwd, Quiet: map[string]bool{}}
	if cmd, ok := job.EvalString("Cmd", nil); ok && cmd != "" {
		out.Quiet[filepath.Base(cmd)] = true // as in HTCondor, whatever the job made of its own program
	}
	if list, ok := job.EvalString("TransferOutput", nil); ok {
		out.Listed, out.Names = true, names(list)
	}
	remaps, _ := job.EvalString("TransferOutputRemaps", nil)
	var err error
	if out.Remaps, err = ParseRemaps(remaps); err != nil {
		return Output{}, errs.E("transfer.OutputOf", errs.Invalid, "TransferOutputRemaps", err)
	}
	return out, nil
}

// Destination returns where name of the scratch directory goes.
func (o Output) Destination(name string) string {
	clean := filepath.Clean(name)
	for _, key := range []string{name, clean, filepath.Base(clean)} {
		if to, ok := o.Remaps[key]; ok {
			return under(o.Iwd, to)
		}
	}
	return filepath.Join(o.Iwd, filepath.Base(clean))
}

// ParseRemaps reads "name = newname; name2 = newname2", in which a backslash
// takes the meaning from ; and = and itself.
func ParseRemaps(text string) (map[string]string, error) {
	remaps := map[string]string{}
	var name, part strings.Builder
	haveName := false
	flush := func() error {
		from, to := strings.TrimSpace(name.String()), strings.TrimSpace(part.String())
		if !haveName {
			if to != "" {
				return fmt.Errorf("%q has no =, want name = newname", to)
			}
			return nil
		}
		if from == "" || to == "" {
			return fmt.Errorf("%q = %q lacks a name, want name = newname", from, to)
		}
		remaps[from] = to
		return nil
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && strings.IndexByte(`;=\`, text[i+1]) >= 0:
			i++
			part.WriteByte(text[i])
		case c == '=' && !haveName:
			name.Reset()
			name.WriteString(part.String())
			part.Reset()
			haveName = true
		case c == ';':
			if err := flush(); err != nil {
				return nil, err
			}
			part.Reset()
			haveName = false
		default:
			part.WriteByte(c)
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	return remaps, nil
}

// names splits a list of files, which may be quoted as a whole.
func names(list string) []string {
	var all []string
	for name := range strings.SplitSeq(strings.Trim(strings.TrimSpace(list), `"`), ",") {
		if name = strings.TrimSpace(name); name != "" {
			all = append(all, name)
		}
	}
	return all
}

func under(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

func flag(job *classad.Ad, name string, otherwise bool) bool {
	if v, defined := job.EvalBool(name, nil); defined {
		return v
	}
	return otherwise
}
