// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// list is what a plugin is to move: an ad for each file, before them what the
// job has to say to plugins.
func (p *Plugins) list(b batch) []byte {
	var out []byte
	put := func(ad *classad.Ad) { out = append(ad.AppendText(out, classad.New), '\n') }
	shared := classad.NewAd()
	if p.Job != nil && b.plugin.Protocol >= 2 {
		names := []string{"PluginData"}
		for _, item := range b.items {
			if n := methodOf(item.URL) + "_PluginData"; !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
		for _, name := range names {
			e, ok := p.Job.Lookup(name)
			if !ok {
				continue
			}
			if b.plugin.Protocol < 4 {
				shared.Set(name, e)
				continue
			}
			ad := classad.NewAd()
			if scheme, ok := strings.CutSuffix(name, "_PluginData"); ok {
				ad.SetString("Protocol", scheme)
			}
			ad.Set(name, e)
			put(ad)
		}
	}
	for _, item := range b.items {
		ad := classad.NewAd()
		ad.SetString("Url", item.URL)
		ad.SetString("LocalFileName", p.local(item.Name))
		ad.Update(shared)
		put(ad)
	}
	return out
}

// local is the path of a file that is moved by URL.
func (p *Plugins) local(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.Scratch, filepath.FromSlash(name))
}

// environment is what a plugin finds beside what its runner has: of the job's
// environment what begins with the plugin's name, as CURL_ for curl_plugin. What
// the system's loader of programs reads is never the job's to say.
func (p *Plugins) environment(one Plugin) []string {
	env := slices.Clone(p.Env)
	prefix := one.name() + "_"
	for _, kv := range p.JobEnv {
		if len(kv) >= len(prefix) && strings.EqualFold(kv[:len(prefix)], prefix) && (one.FromJob || !loads(kv)) {
			env = append(env, kv)
		}
	}
	return env
}

// loads reports whether a variable is read by the loader of programs.
func loads(kv string) bool {
	return strings.HasPrefix(kv, "LD_") || strings.HasPrefix(kv, "GLIBC_")
}

// parseAds reads the ads that a plugin wrote: in brackets, one after the
// other, with anything between them. What is no ad is passed over.
func parseAds(text []byte) []*classad.Ad {
	var all []*classad.Ad
	for len(all) < maxURLs {
		at := bytes.IndexByte(text, '[')
		if at < 0 {
			break
		}
		text = text[at:]
		end := bracket(text)
		if end < 0 {
			break
		}
		if ad, err := classad.ParseAd(string(text[:end]), classad.New); err == nil && ad.Len() > 0 {
			all = append(all, ad)
		}
		text = text[end:]
	}
	return all
}

// bracket returns where the bracket that text begins with is closed, outside
// of strings; -1 if nowhere.
func bracket(text []byte) int {
	depth := 0
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '[':
			depth++
		case c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
