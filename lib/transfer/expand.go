// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// SendItem is one file, directory or URL that is to be sent.
type SendItem struct {
	// Source is a name below the root, with a slash at its end for the
	// contents of a directory, an absolute path outside of it, or a URL that the
	// other end is to fetch.
	Source string
	// URL is where the file is stored, by a plugin; "" sends it to the other
	// end.
	URL string
	// Name is what the other end calls it, "" for the last part of Source.
	Name string
}

// entry is one thing on its way, after directories were looked into.
type entry struct {
	source string // below the root, an absolute path, or a URL
	name   string // at the other end
	dest   string // URL
	size   int64
	mode   fs.FileMode
	dir    bool
	link   bool // source is a link to a directory, which is not sent
	remote bool // source is a URL
	err    error
}

// tree is where files are sent from.
type browser interface {
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	ReadDir(name string) ([]fs.DirEntry, error)
}

type rootTree struct{ root *os.Root }

func (t rootTree) Stat(name string) (fs.FileInfo, error)  { return t.root.Stat(name) }
func (t rootTree) Lstat(name string) (fs.FileInfo, error) { return t.root.Lstat(name) }
func (t rootTree) ReadDir(name string) ([]fs.DirEntry, error) {
	dir, err := t.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	all, err := dir.ReadDir(-1)
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, err
}

// expander turns items into entries.
type expander struct {
	tree     browser
	outside  browser // what absolute paths lead to; nil is nothing
	outer    int     // entries of it
	quiet    map[string]bool
	preserve bool
	made     map[string]bool // directories of preserved paths
	all      []entry
}

// expand looks into the directories of items. Of entries with the same name
// the last one stays; what goes to URLs comes first, and what is fetched from
// URLs last.
func expand(t browser, outside Outside, p SendPlan) []entry {
	x := &expander{tree: t, quiet: p.Quiet, preserve: p.Preserve, made: map[string]bool{}}
	if outside != nil {
		x.outside = outsideTree{outside}
	}
	for _, item := range p.Items {
		x.item(item)
	}
	seen := map[string]bool{}
	kept := x.all[:0:0]
	for _, e := range slices.Backward(x.all) {
		if e.dest == "" && !e.dir {
			if seen[e.name] {
				continue
			}
			seen[e.name] = true
		}
		kept = append(kept, e)
	}
	slices.Reverse(kept)
	slices.SortStableFunc(kept, func(a, b entry) int { return a.rank() - b.rank() })
	return kept
}

func (e entry) rank() int {
	switch {
	case e.dest != "":
		return 0
	case e.remote:
		return 2
	}
	return 1
}

func (x *expander) item(item SendItem) {
	if isURL(item.Source) {
		name := item.Name
		if name == "" {
			plain, _, _ := strings.Cut(item.Source, "?")
			name = path.Base(plain)
		}
		x.all = append(x.all, entry{source: item.Source, name: name, remote: true})
		return
	}
	source := filepath.ToSlash(item.Source)
	b := branch{source: path.Clean(source), dest: item.URL, name: item.Name}
	b.contents = strings.HasSuffix(source, "/")
	source = b.source
	if b.name == "" {
		b.name = path.Base(source)
	}
	if b.contents {
		b.name = ""
	} else if x.preserve && item.URL == "" && item.Name == "" && !path.IsAbs(source) {
		b.name = source
		x.parents(path.Dir(source))
	}
	x.walk(b)
}

// branch is what stands for one name of the list, and what is below it.
type branch struct {
	source   string // where it is
	name     string // where it goes; "" is the scratch directory itself
	dest     string // URL, "" for none
	contents bool   // of a directory what is in it, and not itself
	linked   bool   // it is known to be a link
	depth    int    // below what was listed
}

// parents adds the directories that lead to a preserved path.
func (x *expander) parents(dir string) {
	if dir == "." || dir == "/" || x.made[dir] {
		return
	}
	x.parents(path.Dir(dir))
	x.made[dir] = true
	e := entry{source: dir, name: dir, dir: true, mode: 0o755}
	if info, err := x.tree.Stat(filepath.FromSlash(dir)); err == nil {
		e.mode = info.Mode().Perm()
	}
	x.all = append(x.all, e)
}

// treeOf is what a name is looked up in: the root or, for an absolute one,
// what lies outside.
func (x *expander) treeOf(local string) (browser, error) {
	switch {
	case filepath.IsLocal(local):
		return x.tree, nil
	case x.outside == nil || !filepath.IsAbs(local):
		return nil, errNotPermitted
	case x.outer >= mostOutside:
		return nil, errTooMany
	}
	x.outer++
	return x.outside, nil
}

// walk adds what a branch has.
func (x *expander) walk(b branch) {
	if x.quiet[path.Base(b.source)] {
		return
	}
	e := entry{source: b.source, name: b.name, dest: b.dest}
	local := filepath.FromSlash(b.source)
	tree, err := x.treeOf(local)
	if err != nil {
		e.err = err
		x.all = append(x.all, e)
		return
	}
	info, err := tree.Lstat(local)
	link := b.linked
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		link = true
		info, err = tree.Stat(local)
	}
	if err != nil {
		e.err = err
		x.all = append(x.all, e)
		return
	}
	e.mode = info.Mode().Perm()
	switch {
	case info.Mode().IsRegular():
		e.size = info.Size()
		x.all = append(x.all, e)
		return
	case !info.IsDir():
		if info.Mode()&(fs.ModeSocket|fs.ModeNamedPipe) == 0 {
			e.err = errNotPermitted // a device
			x.all = append(x.all, e)
		}
		return // sockets and pipes are passed over, as in HTCondor
	case link && !b.contents:
		e.link = true
		x.all = append(x.all, e)
		return
	}
	if !b.contents && !x.made[b.name] && b.dest == "" {
		x.made[b.name] = true
		e.dir = true
		x.all = append(x.all, e)
	}
	if b.depth >= maxDepth {
		e.dir, e.err = false, errTooDeep
		x.all = append(x.all, e)
		return
	}
	entries, err := tree.ReadDir(local)
	if err != nil {
		e.dir, e.err = false, err
		x.all = append(x.all, e)
		return
	}
	for _, sub := range entries {
		below := branch{source: path.Join(b.source, sub.Name()), name: path.Join(b.name, sub.Name()), linked: sub.Type()&fs.ModeSymlink != 0, depth: b.depth + 1}
		if b.dest != "" {
			below.dest = strings.TrimSuffix(b.dest, "/") + "/" + sub.Name()
		}
		x.walk(below)
	}
}

// isURL reports whether a name is one: letters, then ://.
func isURL(name string) bool {
	scheme, rest, ok := strings.Cut(name, "://")
	if !ok || rest == "" || scheme == "" || !isLetter(scheme[0]) {
		return false
	}
	for i := range len(scheme) {
		if c := scheme[i]; !isLetter(c) && (c < '0' || c > '9') && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// methodOf is the plugin method of a URL: its scheme, of "chtc+osdf://" the
// part behind the last plus sign.
func methodOf(u string) string {
	scheme, _, _ := strings.Cut(u, ":")
	if i := strings.LastIndexAny(scheme, "+.-"); i >= 0 && strings.Contains(u, "://") {
		scheme = scheme[i+1:]
	}
	return strings.ToLower(scheme)
}
