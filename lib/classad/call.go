// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

// function identifies a built-in function.
type function uint8

const (
	fnUnknown function = iota

	fnIsUndefined
	fnIsError
	fnIsString
	fnIsInteger
	fnIsReal
	fnIsList
	fnIsClassad
	fnIsBoolean
	fnIsAbsTime
	fnIsRelTime
	fnIfThenElse

	fnMember
	fnIdenticalMember
	fnSize
	fnSum
	fnAvg
	fnMin
	fnMax
	fnAnyCompare
	fnAllCompare

	fnTime
	fnCurrentTime
	fnTimeZoneOffset
	fnDayTime
	fnGetYear
	fnGetMonth
	fnGetDayOfYear
	fnGetDayOfMonth
	fnGetDayOfWeek
	fnGetDays
	fnGetHours
	fnGetMinutes
	fnGetSeconds
	fnSplitTime
	fnFormatTime
	fnInterval

	fnStrcat
	fnJoin
	fnToUpper
	fnToLower
	fnSubstr
	fnStrcmp
	fnStricmp
	fnSplit
	fnSplitUserName
	fnSplitSlotName

	fnVersionCmp
	fnVersionLE
	fnVersionLT
	fnVersionGE
	fnVersionGT
	fnVersionEQ
	fnVersionInRange

	fnRegexp
	fnRegexpMember
	fnRegexps
	fnReplace
	fnReplaceAll

	fnInt
	fnReal
	fnString
	fnBool
	fnAbsTime
	fnRelTime
	fnFloor
	fnCeiling
	fnRound
	fnPow
	fnQuantize
	fnRandom

	fnEval
	fnUnparse
	fnUnresolved
	fnDebug
	fnEvalInEachContext
	fnCountMatches

	fnStringListsIntersect
	fnStringListSize
	fnStringListSum
	fnStringListAvg
	fnStringListMin
	fnStringListMax
	fnStringListMember
	fnStringListIMember
	fnStringListSubsetMatch
	fnStringListISubsetMatch
	fnStringListRegexpMember

	fnEnvV1ToV2
	fnMergeEnvironment
	fnListToArgs
	fnArgsToList
	fnUserHome
	fnUserMap
)

// functions are the built-in functions by lower-case name.
var functions = map[string]function{
	"isundefined": fnIsUndefined, "iserror": fnIsError, "isstring": fnIsString, "isinteger": fnIsInteger,
	"isreal": fnIsReal, "islist": fnIsList, "isclassad": fnIsClassad, "isboolean": fnIsBoolean,
	"isabstime": fnIsAbsTime, "isreltime": fnIsRelTime, "ifthenelse": fnIfThenElse,

	"member": fnMember, "identicalmember": fnIdenticalMember, "size": fnSize, "sum": fnSum, "avg": fnAvg,
	"min": fnMin, "max": fnMax, "anycompare": fnAnyCompare, "allcompare": fnAllCompare,

	"time": fnTime, "currenttime": fnCurrentTime, "timezoneoffset": fnTimeZoneOffset, "daytime": fnDayTime,
	"getyear": fnGetYear, "getmonth": fnGetMonth, "getdayofyear": fnGetDayOfYear,
	"getdayofmonth": fnGetDayOfMonth, "getdayofweek": fnGetDayOfWeek, "getdays": fnGetDays,
	"gethours": fnGetHours, "getminutes": fnGetMinutes, "getseconds": fnGetSeconds,
	"splittime": fnSplitTime, "formattime": fnFormatTime, "interval": fnInterval,

	"strcat": fnStrcat, "join": fnJoin, "toupper": fnToUpper, "tolower": fnToLower, "substr": fnSubstr,
	"strcmp": fnStrcmp, "stricmp": fnStricmp, "split": fnSplit,
	"splitusername": fnSplitUserName, "splitslotname": fnSplitSlotName,

	"versioncmp": fnVersionCmp, "versionle": fnVersionLE, "versionlt": fnVersionLT, "versionge": fnVersionGE,
	"versiongt": fnVersionGT, "versioneq": fnVersionEQ, "version_in_range": fnVersionInRange,

	"regexp": fnRegexp, "regexpmember": fnRegexpMember, "regexps": fnRegexps, "replace": fnReplace,
	"replaceall": fnReplaceAll,

	"int": fnInt, "real": fnReal, "string": fnString, "bool": fnBool, "abstime": fnAbsTime, "reltime": fnRelTime,
	"floor": fnFloor, "ceil": fnCeiling, "ceiling": fnCeiling, "round": fnRound, "pow": fnPow,
	"quantize": fnQuantize, "random": fnRandom,

	"eval": fnEval, "unparse": fnUnparse, "unresolved": fnUnresolved, "debug": fnDebug,
	"evalineachcontext": fnEvalInEachContext, "countmatches": fnCountMatches,

	"stringlistsintersect": fnStringListsIntersect, "stringlistsize": fnStringListSize,
	"stringlistsum": fnStringListSum, "stringlistavg": fnStringListAvg, "stringlistmin": fnStringListMin,
	"stringlistmax": fnStringListMax, "stringlistmember": fnStringListMember,
	"stringlistimember": fnStringListIMember, "stringlistsubsetmatch": fnStringListSubsetMatch,
	"stringlistisubsetmatch": fnStringListISubsetMatch, "stringlist_regexpmember": fnStringListRegexpMember,

	"envv1tov2": fnEnvV1ToV2, "mergeenvironment": fnMergeEnvironment, "listtoargs": fnListToArgs,
	"argstolist": fnArgsToList, "userhome": fnUserHome, "usermap": fnUserMap,
}

func newCall(spelled string, args []node) *call {
	return &call{fn: functions[foldString(spelled)], spelled: spelled, args: args}
}

// arguments are the evaluated arguments of a call.
type arguments struct {
	n int
	v [4]Value
}

// take evaluates the arguments if there are between lo and hi of them, and
// takes the steps for looking at their text once. Otherwise, and if an argument
// cannot be evaluated, ok is false.
func (ev *evaluator) take(n *call, lo, hi int, a *arguments) (ok bool) {
	a.n = len(n.args)
	if a.n < lo || a.n > hi {
		return false
	}
	c := ev.compiledCall(n)
	for i := range n.args {
		a.v[i] = ev.argument(c, n, i)
		if a.v[i].kind == KindString {
			ev.spend(int(a.v[i].num))
		}
		if ev.failed {
			return false
		}
	}
	return true
}

// compiledCall returns the code of a call that is being entered, nil if it is
// evaluated as a tree.
func (ev *evaluator) compiledCall(n *call) *code {
	c := ev.pending
	if c == nil || c.tree != node(n) {
		return nil
	}
	ev.pending = nil
	return c
}

// argument evaluates an argument of a call.
func (ev *evaluator) argument(c *code, n *call, i int) Value {
	if c == nil {
		return ev.eval(n.args[i])
	}
	ev.depth += int(c.level)
	v := ev.run(&c.args[i])
	ev.depth -= int(c.level)
	return v
}

// strict looks at the arguments of a function that wants all of them: error
// wins over undefined, and done is false if there is neither.
func (a *arguments) strict() (v Value, done bool) {
	for i := range a.n {
		if a.v[i].kind == KindError {
			return ErrorValue(), true
		}
	}
	for i := range a.n {
		if a.v[i].kind == KindUndefined {
			return Undefined(), true
		}
	}
	return Value{}, false
}

func (ev *evaluator) call(n *call) Value {
	switch n.fn {
	case fnUnknown:
		return ErrorValue()
	case fnIfThenElse:
		return ev.ifThenElse(n)
	case fnIsUndefined, fnIsError, fnIsString, fnIsInteger, fnIsReal, fnIsList, fnIsClassad, fnIsBoolean,
		fnIsAbsTime, fnIsRelTime:
		return ev.isKind(n)
	case fnMember, fnIdenticalMember:
		return ev.member(n)
	case fnSize:
		return ev.size(n)
	case fnSum, fnAvg:
		return ev.sum(n)
	case fnMin, fnMax:
		return ev.bound(n)
	case fnAnyCompare, fnAllCompare:
		return ev.compareList(n)
	case fnTime, fnCurrentTime, fnTimeZoneOffset, fnDayTime:
		return ev.clock(n)
	case fnGetYear, fnGetMonth, fnGetDayOfYear, fnGetDayOfMonth, fnGetDayOfWeek, fnGetDays, fnGetHours,
		fnGetMinutes, fnGetSeconds:
		return ev.timeField(n)
	case fnSplitTime:
		return ev.splitTime(n)
	case fnFormatTime:
		return ev.formatTime(n)
	case fnInterval:
		return ev.interval(n)
	case fnStrcat:
		return ev.strcat(n)
	case fnJoin:
		return ev.join(n)
	case fnToUpper, fnToLower:
		return ev.changeCase(n)
	case fnSubstr:
		return ev.substr(n)
	case fnStrcmp, fnStricmp:
		return ev.strcmp(n)
	case fnSplit:
		return ev.split(n)
	case fnSplitUserName, fnSplitSlotName:
		return ev.splitAt(n)
	case fnVersionCmp, fnVersionLE, fnVersionLT, fnVersionGE, fnVersionGT, fnVersionEQ:
		return ev.compareVersions(n)
	case fnVersionInRange:
		return ev.versionInRange(n)
	case fnRegexp:
		return ev.regexp(n)
	case fnRegexpMember:
		return ev.regexpMember(n)
	case fnRegexps, fnReplace, fnReplaceAll:
		return ev.substitute(n)
	case fnInt, fnReal, fnString, fnBool:
		return ev.convert(n)
	case fnAbsTime, fnRelTime:
		return ev.convertTime(n)
	case fnFloor, fnCeiling, fnRound:
		return ev.round(n)
	case fnPow:
		return ev.pow(n)
	case fnQuantize:
		return ev.quantize(n)
	case fnRandom:
		return ev.random(n)
	case fnEval:
		return ev.evalText(n)
	case fnUnparse:
		return ev.unparse(n)
	case fnUnresolved:
		return ev.unresolved(n)
	case fnDebug:
		return ev.debug(n)
	case fnEvalInEachContext, fnCountMatches:
		return ev.eachContext(n)
	case fnStringListsIntersect:
		return ev.stringListsIntersect(n)
	case fnStringListSize, fnStringListSum, fnStringListAvg, fnStringListMin, fnStringListMax:
		return ev.stringListSummary(n)
	case fnStringListMember, fnStringListIMember:
		return ev.stringListMember(n)
	case fnStringListSubsetMatch, fnStringListISubsetMatch:
		return ev.stringListSubset(n)
	case fnStringListRegexpMember:
		return ev.stringListRegexpMember(n)
	case fnEnvV1ToV2:
		return ev.envV1ToV2(n)
	case fnMergeEnvironment:
		return ev.mergeEnvironment(n)
	case fnListToArgs:
		return ev.listToArgs(n)
	case fnArgsToList:
		return ev.argsToList(n)
	case fnUserHome:
		return ev.userHome(n)
	case fnUserMap:
		return ev.userMap(n)
	}
	return ErrorValue()
}
