// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow

import "strconv"

// Call is the number of a remote call, as it begins a request.
type Call int64

// The calls that a shadow of today answers.
const (
	CallGetJobInfo          Call = -63
	CallJobExit             Call = -65
	CallGetFileInfo         Call = -74
	CallGetUserInfo         Call = -76
	CallRegisterStarterInfo Call = -77
	CallBeginExecution      Call = -78
	CallRegisterJobInfo     Call = -81
	CallJobTermination      Call = -82
	CallDprintfStats        Call = -84
	CallGetDockerCreds      Call = -85

	CallAccess     Call = 1
	CallChmod      Call = 7
	CallChown      Call = 8
	CallClose      Call = 10
	CallFchmod     Call = 19
	CallFchown     Call = 20
	CallFstat      Call = 24
	CallFstatfs    Call = 25
	CallFsync      Call = 26
	CallFtruncate  Call = 27
	CallLink       Call = 52
	CallLseek      Call = 54
	CallLstat      Call = 55
	CallMkdir      Call = 58
	CallOpen       Call = 66
	CallRead       Call = 71
	CallReadlink   Call = 72
	CallRename     Call = 78
	CallRmdir      Call = 79
	CallStat       Call = 108
	CallStatfs     Call = 109
	CallSymlink    Call = 111
	CallTruncate   Call = 113
	CallUnlink     Call = 115
	CallWrite      Call = 120
	CallUtime      Call = 242
	CallLchown     Call = 251
	CallUlog       Call = 284
	CallGetJobAttr Call = 285
	CallSetJobAttr Call = 286
	CallConstrain  Call = 287
	CallSessions   Call = 288
	CallPread      Call = 289
	CallPwrite     Call = 290
	CallSwrite     Call = 291
	CallRmall      Call = 292
	CallGetfile    Call = 293
	CallPutfile    Call = 294
	CallGetlongdir Call = 295
	CallGetdir     Call = 296
	CallWhoami     Call = 297
	CallSread      Call = 298
	CallWhoareyou  Call = 299
	CallGetcreds   Call = 302
	CallGetProxy   Call = 303
	CallNotify     Call = 304
	CallGuidance   Call = 305
)

// answer is the form of what the shadow sends back.
type answer uint8

const (
	answerNone     answer = iota // nothing at all
	answerValue                  // the value, or the value and an error number
	answerText                   // … a text behind the value
	answerData                   // … as many bytes as the value says
	answerBlock                  // … a block of blockSize bytes
	answerAd                     // … an ad
	answerSessions               // … six texts
	answerLone                   // the value and never an error number
	answerGuidance               // the value, then an ad whatever it is
	answerCreds                  // 1 and an ad, again and again, then 0 or less
	answerBare                   // an ad without a value
	answerProxy                  // what one end of a delegation sends
)

// form is how one call looks.
type form struct {
	call Call
	name string
	// items of the request in order: i an integer, s a text, a an ad, d bytes
	// as many as the second integer says, m a message of its own that holds what one
	// end of a delegation sends.
	items string
	answer
}

// forms are the calls there are.
var forms = [...]form{
	{CallGetJobInfo, "get_job_info", "", answerAd},
	{CallRegisterStarterInfo, "register_starter_info", "a", answerValue},
	{CallRegisterJobInfo, "register_job_info", "a", answerValue},
	{CallGetUserInfo, "get_user_info", "", answerAd},
	{CallBeginExecution, "begin_execution", "", answerValue},
	{CallJobExit, "job_exit", "iia", answerValue},
	{CallJobTermination, "job_termination", "a", answerValue},
	{CallUlog, "ulog", "a", answerNone},
	{CallSessions, "get_sec_session_info", "ss", answerSessions},
	{CallNotify, "event_notification", "a", answerLone},
	{CallGuidance, "request_guidance", "a", answerGuidance},
	{CallDprintfStats, "dprintf_stats", "s", answerValue},
	{CallGetJobAttr, "get_job_attr", "s", answerText},
	{CallSetJobAttr, "set_job_attr", "ss", answerValue},
	{CallConstrain, "constrain", "s", answerValue},
	{CallGetcreds, "getcreds", "s", answerCreds},
	{CallGetProxy, "get_delegated_proxy", "sim", answerProxy},
	{CallGetDockerCreds, "get_docker_creds", "a", answerBare},
	{CallGetFileInfo, "get_file_info_new", "s", answerText},
	{CallOpen, "open", "iis", answerValue},
	{CallClose, "close", "i", answerValue},
	{CallFsync, "fsync", "i", answerValue},
	{CallRead, "read", "ii", answerData},
	{CallWrite, "write", "iid", answerValue},
	{CallLseek, "lseek", "iii", answerValue},
	{CallPread, "pread", "iii", answerData},
	{CallPwrite, "pwrite", "iiid", answerValue},
	{CallSread, "sread", "iiiii", answerData},
	{CallSwrite, "swrite", "iiiiid", answerValue},
	{CallUnlink, "unlink", "s", answerValue},
	{CallRename, "rename", "ss", answerValue},
	{CallMkdir, "mkdir", "si", answerValue},
	{CallRmdir, "rmdir", "s", answerValue},
	{CallRmall, "rmall", "s", answerValue},
	{CallGetfile, "getfile", "s", answerData},
	{CallPutfile, "putfile", "sii", answerValue},
	{CallGetlongdir, "getlongdir", "s", answerText},
	{CallGetdir, "getdir", "s", answerText},
	{CallWhoami, "whoami", "i", answerData},
	{CallWhoareyou, "whoareyou", "si", answerData},
	{CallStat, "stat", "s", answerBlock},
	{CallLstat, "lstat", "s", answerBlock},
	{CallFstat, "fstat", "i", answerBlock},
	{CallStatfs, "statfs", "s", answerBlock},
	{CallFstatfs, "fstatfs", "i", answerBlock},
	{CallAccess, "access", "si", answerValue},
	{CallChmod, "chmod", "si", answerValue},
	{CallChown, "chown", "sii", answerValue},
	{CallLchown, "lchown", "sii", answerValue},
	{CallFchmod, "fchmod", "ii", answerValue},
	{CallFchown, "fchown", "iii", answerValue},
	{CallFtruncate, "ftruncate", "ii", answerValue},
	{CallTruncate, "truncate", "si", answerValue},
	{CallUtime, "utime", "sii", answerValue},
	{CallLink, "link", "ss", answerValue},
	{CallSymlink, "symlink", "ss", answerValue},
	{CallReadlink, "readlink", "si", answerData},
}

// form returns how a call looks; ok is false for one that there is not.
func (c Call) form() (f form, ok bool) {
	for i := range forms {
		if forms[i].call == c {
			return forms[i], true
		}
	}
	return form{}, false
}

// String returns the name of the call as logs of HTCondor have it.
func (c Call) String() string {
	if f, ok := c.form(); ok {
		return f.name
	}
	return "call " + strconv.FormatInt(int64(c), 10)
}

// Calls returns every call there is.
func Calls() []Call {
	all := make([]Call, len(forms))
	for i := range forms {
		all[i] = forms[i].call
	}
	return all
}
