// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"io/fs"
	"strings"
	"testing"
)

func memory(files map[string]string) MapOptions {
	return MapOptions{
		ReadFile: func(path string) ([]byte, error) {
			if text, ok := files[path]; ok {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		},
		ReadDir: func(path string) ([]string, error) {
			var names []string
			for name := range files {
				if rest, ok := strings.CutPrefix(name, path+"/"); ok && !strings.Contains(rest, "/") {
					names = append(names, rest)
				}
			}
			if names == nil {
				return nil, fs.ErrNotExist
			}
			return names, nil
		},
	}
}

func TestMap(t *testing.T) {
	t.Parallel()
	const expressions = `
# method principal canonical
FS ^(root|condor)$ condor
fs (.*) \1
SSL "CN=Alice Smith,O=\"x\"" alice
SSL "^C=US,CN=(\w+)\s(\w+)$" \2.\1@people
SSL ^/DC=org/CN=([^/]+)$ \1@dc
SCITOKENS ^https:\/\/t\.org,(.+)$ \1@t
* .* nobody
`
	const names = `
FS root condor
FS /^u[0-9]+$/i user
SSL "/CN=with slash" slash
SSL /^CN=(.+)x*$/U \1
SSL plain(.*) literal\1\0
`
	files := map[string]string{
		"/etc/condor/more": "FS ^extra$ extra\n", "/etc/condor/dir/2": "FS ^second (.*)$ no\n", "/etc/condor/dir/1": "FS ^dir$ one\n",
		"/etc/condor/dir/3": "FS ^dir$ three\n",
	}
	for _, test := range []struct {
		text         string
		names        bool
		method, name string
		want         string
	}{
		{expressions, false, "FS", "root", "condor"},
		{expressions, false, "FS", "alice", "alice"},
		{expressions, false, "SSL", `CN=Alice Smith,O="x"`, "alice"},
		{expressions, false, "ssl", "C=US,CN=Bob Jones", "Jones.Bob@people"},
		{expressions, false, "SSL", "/DC=org/CN=carol", "carol@dc"},
		{expressions, false, "SCITOKENS", "https://t.org,dave", "dave@t"},
		{expressions, false, "PASSWORD", "x", ""}, // * is no wildcard for methods
		{expressions, false, "SSL", "C=US,CN=Bob Jones\n", ""},
		{names, true, "FS", "root", "condor"},
		{names, true, "FS", "roots", ""},
		{names, true, "FS", "U12", "user"},
		{names, true, "SSL", "/CN=with slash", "slash"},
		{names, true, "SSL", "CN=abxx", "ab"},
		{names, true, "SSL", "plain(.*)", `literal\1plain(.*)`},
		{"@include more\nFS (.*) rest\n", false, "FS", "extra", "extra"},
		{"@include \"/etc/condor/more\"\nFS (.*) rest\n", false, "FS", "other", "rest"},
		{"@include dir\nFS (.*) rest\n", false, "FS", "dir", "one"},
	} {
		o := memory(files)
		o.AssumeNames = test.names
		m, err := ParseMap("/etc/condor/map", test.text, o)
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		if got, _ := m.Lookup(test.method, test.name); got != test.want {
			t.Errorf("%s %q = %q, want %q", test.method, test.name, got, test.want)
		}
	}
	var none *UserMap
	if _, ok := none.Lookup("FS", "x"); ok {
		t.Error("no map maps")
	}
}

func TestMapErrors(t *testing.T) {
	t.Parallel()
	files := map[string]string{"/m/inner": "@include other\n", "/m/bad": "FS only\n"}
	for text, want := range map[string]string{
		"FS\n":                      "/m/map:1:3: want: method principal canonical",
		"FS x y\nSSL (unclosed z\n": "/m/map:2:4: regular expression",
		"SSL ^(?!bad)x$ y\n":        "look-around",
		"FS (a)\\1 y\n":             "back references",
		"@include\n":                "@include wants a file",
		"@include inner\n":          "/m/inner:1:1: an included file cannot include another",
		"@include bad\n":            "/m/bad:1:3: want",
		"@include absent\n":         "/m/map:1:9: @include /m/absent",
	} {
		if _, err := ParseMap("/m/map", text, memory(files)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: err = %v, want %s", text, err, want)
		}
	}
	if _, err := ParseMap("map", "@include x\n", MapOptions{}); err == nil {
		t.Error("an include without files is no error")
	}
}

func FuzzMap(f *testing.F) {
	f.Add("FS (.*) \\1\nSSL /x/iU y\n@include z\n", "FS", "alice", true)
	f.Add("SSL \"a b\\\"c\" d\n# x\n\n* [[:alpha:]]+\\h\\Z q\n", "SSL", "a b\"c", false)
	f.Add("FS [^]x]+ y\nFS (?'n'a) \\1", "FS", "a", false)
	f.Fuzz(func(t *testing.T, text, method, name string, names bool) {
		if len(text) > 1<<12 || len(name) > 1<<12 {
			return
		}
		m, err := ParseMap("map", text, MapOptions{AssumeNames: names})
		if (m == nil) == (err == nil) {
			t.Fatalf("map %v, err %v", m, err)
		}
		m.Lookup(method, name)
	})
}
