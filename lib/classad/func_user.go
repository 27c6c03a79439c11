// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

// userHome is userHome(user[, default]); the default counts if it is a string
// that is not empty.
func (ev *evaluator) userHome(n *call) Value {
	if len(n.args) != 1 && len(n.args) != 2 {
		return ev.fail()
	}
	otherwise := ""
	if len(n.args) == 2 {
		v := ev.eval(n.args[1])
		if v.kind == KindString {
			otherwise = v.str()
		}
		ev.failed = ev.steps < 0
	}
	user := ev.eval(n.args[0])
	ev.failed = ev.steps < 0
	if user.kind == KindString && ev.env.HomeDir != nil {
		if home, ok := ev.env.HomeDir(user.str()); ok {
			return String(home)
		}
	}
	switch {
	case otherwise != "":
		return String(otherwise)
	case user.kind == KindString || user.kind == KindUndefined:
		return Undefined()
	}
	return ErrorValue()
}

// userMap is userMap(map, input[, preferred[, default]]). With two arguments
// it is what the map has, else one item of it: the preferred if it is there,
// the first if not.
func (ev *evaluator) userMap(n *call) Value {
	var a arguments
	if !ev.take(n, 2, 4, &a) {
		return ErrorValue()
	}
	otherwise := Undefined()
	if a.n == 4 {
		otherwise = a.v[3]
	}
	if a.v[0].kind != KindString || a.v[1].kind != KindString {
		if a.v[0].kind == KindError || a.v[1].kind == KindError {
			return ErrorValue()
		}
		return otherwise
	}
	if ev.env.UserMap == nil {
		return otherwise
	}
	output, ok := ev.env.UserMap(a.v[0].str(), a.v[1].str())
	if !ok {
		return otherwise
	}
	if a.n == 2 {
		return ev.text(output)
	}
	first, some := "", false
	for item := range tokens(output, ",") {
		if a.v[2].kind == KindString && equalNames(item, a.v[2].str()) {
			return ev.text(item)
		}
		if !some {
			first, some = item, true
		}
	}
	if some {
		return ev.text(first)
	}
	return otherwise
}
