// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"maps"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// requirements sets Requirements: the user's, and clauses for what they do not
// speak of. A user's MY.Requirements stands alone.
func (b *builder) requirements() {
	text, given := b.get("requirements")
	if b.q.find("my.requirements") != nil {
		return
	}
	var clauses []string
	var refs map[string]bool
	if given {
		if _, err := classad.ParseExpr(text, classad.Old); err != nil {
			b.setExpr("Requirements", text) // reports it
			return
		}
		var mine bool
		if refs, mine = b.d.references(text); mine || refs["requirements"] {
			b.bad(0, Problem{Value: text, Message: "the requirements refer to themselves", Want: "$(requirements) for the text written before"})
			return
		}
		clauses = append(clauses, "("+text+")")
	}
	appended := b.d.opts.Config("APPEND_REQ_VANILLA")
	if appended == "" {
		appended = b.d.opts.Config("APPEND_REQUIREMENTS")
	}
	if appended != "" {
		clauses = append(clauses, "("+appended+")")
		more, _ := b.d.references(appended)
		all := maps.Clone(more)
		if all == nil {
			all = map[string]bool{}
		}
		maps.Copy(all, refs)
		refs = all
	}
	add := func(clause string, mentions ...string) {
		if !slices.ContainsFunc(mentions, func(name string) bool { return refs[name] }) {
			clauses = append(clauses, clause)
		}
	}
	o := &b.d.opts
	add(`(TARGET.Arch == `+quoteString(o.Arch)+`)`, "arch")
	add(`(TARGET.OpSys == `+quoteString(o.OpSys)+`)`, "opsys", "opsysandver", "opsyslongname", "opsysshortname", "opsysname", "opsyslegacy")
	if b.asksFor("RequestDisk", 0) {
		if refs["disk"] {
			add("(TARGET.Disk >= RequestDisk)")
		} else {
			// Newer execution points look at the disk themselves.
			add(`(versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk))`)
		}
	}
	if b.asksFor("RequestMemory", 1) {
		add("(TARGET.Memory >= RequestMemory)")
	}
	if b.asksFor("RequestCpus", 1) {
		add("(TARGET.Cpus >= RequestCpus)", "cpus")
	}
	for _, name := range b.custom() {
		tag := name[len("request"):]
		if v := b.expr(name).Eval(nil); v.Kind() == classad.KindString {
			if s, _ := v.AsString(); s != "" {
				add("regexp("+name+", TARGET."+tag+")", strings.ToLower(tag))
			}
		} else if b.has("Require" + tag) {
			add("(countMatches(MY.Require"+tag+",TARGET.Available"+tag+") >= "+name+")", strings.ToLower(tag))
		} else if b.asksFor(name, 0) {
			add("(TARGET."+tag+" >= "+name+")", strings.ToLower(tag))
		}
	}
	if e := b.expr("EncryptExecuteDirectory"); e != nil && e.Eval(nil).IsTrue() {
		add("TARGET.HasEncryptExecuteDirectory", "encryptexecutedirectory")
	}
	b.transferClause(add, refs)
	b.setOwn("Requirements", strings.Join(clauses, " && "), "the requirements put together")
}

// asksFor reports whether the job has the request and it is not a number of at
// most limit.
func (b *builder) asksFor(name string, limit float64) bool {
	e := b.expr(name)
	if e == nil {
		return false
	}
	f, isNumber := e.Eval(nil).AsNumber()
	return !isNumber || f > limit
}

// custom lists the requests for resources that are not built in, sorted
// ignoring case.
func (b *builder) custom() []string {
	var names []string
	for _, a := range b.attrs {
		switch tag, ok := strings.CutPrefix(strings.ToLower(a.name), "request"); {
		case !ok || len(tag) < 2 || tag[0] == '_' || tag == "cpus" || tag == "memory" || tag == "disk":
		default:
			names = append(names, a.name)
		}
	}
	slices.SortFunc(names, func(x, y string) int { return strings.Compare(strings.ToLower(x), strings.ToLower(y)) })
	return names
}

func quoteString(s string) string { return classad.Literal(classad.String(s)).Text(classad.Old) }

// references lists the names, in lower case, that an expression may take from
// the machine; mine is how it reaches for Requirements itself. What cannot be
// told, as with a name that leads in a circle, is none.
func (d *Description) references(text string) (refs map[string]bool, mine bool) {
	e, err := d.share("="+text, func() (*classad.Expr, error) { return classad.ParseExpr(text, classad.Old) })
	if err != nil {
		return nil, false
	}
	if refs, ok := d.refs[text]; ok {
		return refs, refs[" own"]
	}
	own := classad.NewAd()
	own.SetBool("Requirements", true)
	own.SetInt("RequestMemory", 0)
	r, _ := e.Refs(own)
	refs = map[string]bool{}
	for _, name := range r.External {
		refs[strings.ToLower(name)] = true
	}
	for _, name := range r.Internal {
		if strings.EqualFold(name, "Requirements") {
			refs[" own"] = true // no attribute is called so
		}
	}
	if d.refs == nil || len(d.refs) >= maxShared {
		d.refs = map[string]map[string]bool{}
	}
	d.refs[text] = refs
	return refs, refs[" own"]
}
