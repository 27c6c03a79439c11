// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

// Eval evaluates an attribute with a as the ad it belongs to: env.My is taken
// to be a, everything else of env counts. env may be nil. A missing attribute
// is undefined.
func (a *Ad) Eval(name string, env *Env) Value {
	v, _ := a.TryEval(name, env)
	return v
}

// TryEval is Eval, and ok is false if the evaluation was given up; see
// [Expr.TryEval].
func (a *Ad) TryEval(name string, env *Env) (v Value, ok bool) {
	if env == nil {
		env = &noEnv
	}
	return a.tryEval(&attrName{name, hashName(name)}, env, env.Target)
}

func (a *Ad) tryEval(nm *attrName, env *Env, target *Ad) (v Value, ok bool) {
	at := a.lookup(nm.text, nm.hash)
	if at == nil {
		return Value{}, true
	}
	var ev evaluator
	ev.start(env, a, target)
	v = ev.attribute(at, a)
	if !ev.end() {
		return ErrorValue(), false
	}
	return v, true
}

// EvalString evaluates an attribute; ok is false if it is not a string.
func (a *Ad) EvalString(name string, env *Env) (s string, ok bool) {
	return a.Eval(name, env).AsString()
}

// EvalInt evaluates an attribute to an integer. A real is cut towards zero
// and a boolean is 0 or 1, as daemons read numbers; ok is false for every
// other kind.
func (a *Ad) EvalInt(name string, env *Env) (i int64, ok bool) {
	v := a.Eval(name, env)
	switch v.kind {
	case KindInteger, KindBoolean:
		return v.int(), true
	case KindReal:
		return realToInt(v.real()), true
	}
	return 0, false
}

// EvalReal evaluates an attribute to a real. Integers are converted and a
// boolean is 0 or 1; ok is false for every other kind.
func (a *Ad) EvalReal(name string, env *Env) (f float64, ok bool) {
	return a.Eval(name, env).AsNumber()
}

// EvalBool evaluates an attribute as a condition: a boolean, or a number that
// is true unless zero. defined is false for every other kind.
func (a *Ad) EvalBool(name string, env *Env) (value, defined bool) {
	return a.Eval(name, env).truth()
}
