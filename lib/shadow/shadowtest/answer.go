// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowtest

import (
	"encoding/base64"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/shadow"
)

// notUnderstood is what HTCondor answers to event_notification, also when
// it did understand.
const notUnderstood = -3

func refuse(n cedar.Errno) shadow.Reply { return shadow.Reply{Value: -1, Errno: n} }

// answer makes the answer to a request and does what it asks for.
func (s *Shadow) answer(r *shadow.Request) shadow.Reply {
	switch r.Call {
	case shadow.CallGetJobInfo:
		return shadow.Reply{Ad: s.job.Ad.Clone()}
	case shadow.CallRegisterStarterInfo:
		s.starter = r.Ad
		return shadow.Reply{}
	case shadow.CallRegisterJobInfo, shadow.CallBeginExecution, shadow.CallJobExit, shadow.CallJobTermination, shadow.CallDprintfStats, shadow.CallUlog:
		return shadow.Reply{}
	case shadow.CallGetUserInfo:
		ad := classad.NewAd()
		ad.SetInt("Uid", int64(s.job.UID))
		ad.SetInt("Gid", int64(s.job.GID))
		return shadow.Reply{Ad: ad}
	case shadow.CallSessions:
		return s.sessions()
	case shadow.CallNotify:
		return shadow.Reply{Value: notUnderstood}
	case shadow.CallGuidance:
		return s.guide(r.Ad)
	case shadow.CallGetFileInfo:
		return shadow.Reply{Text: "remote:" + r.Texts[0]}
	case shadow.CallGetJobAttr, shadow.CallSetJobAttr, shadow.CallConstrain:
		if !s.allowed("WantIOProxy", "WantRemoteUpdates") {
			return refuse(cedar.EACCES)
		}
		return s.attribute(r)
	case shadow.CallGetcreds:
		var reply shadow.Reply
		for _, c := range s.job.Creds {
			ad := classad.NewAd()
			ad.SetString("Service", c.Service)
			ad.SetString("Data", base64.StdEncoding.EncodeToString([]byte(c.Data.Reveal())))
			reply.Ads = append(reply.Ads, ad)
		}
		return reply
	case shadow.CallGetProxy:
		if s.job.Proxy == nil {
			return shadow.Reply{}
		}
		chain, err := s.job.Proxy.Delegate(r.Data)
		if err != nil {
			return shadow.Reply{}
		}
		return shadow.Reply{Data: chain}
	case shadow.CallGetDockerCreds:
		ad := s.job.DockerAuth
		if ad == nil {
			ad = classad.NewAd()
			ad.SetString("HTCondorError", "No DOCKER_PAT_PRODUCER configured on the access point")
		}
		return shadow.Reply{Ad: ad}
	}
	if !s.allowed("WantIOProxy", "StreamIn", "StreamOut", "StreamErr") {
		return refuse(cedar.EACCES)
	}
	return s.files.answer(r)
}

// allowed reports whether one of the attributes lets the job do something.
func (s *Shadow) allowed(names ...string) bool {
	for _, name := range names {
		if yes, _ := s.job.Ad.EvalBool(name, nil); yes {
			return true
		}
	}
	return s.job.Open
}

func (s *Shadow) attribute(r *shadow.Request) shadow.Reply {
	switch r.Call {
	case shadow.CallGetJobAttr:
		e, ok := s.job.Ad.Lookup(r.Texts[0])
		if !ok {
			return shadow.Reply{Text: "UNDEFINED"}
		}
		return shadow.Reply{Text: e.String()}
	case shadow.CallSetJobAttr:
		if s.job.Ad.SetText(r.Texts[1], r.Texts[0]) != nil {
			return refuse(cedar.EINVAL)
		}
		return shadow.Reply{}
	}
	was := "true"
	if e, ok := s.job.Ad.Lookup("Requirements"); ok {
		was = e.String()
	}
	if s.job.Ad.SetText("Requirements", "("+was+") && ("+r.Texts[0]+")") != nil {
		return refuse(cedar.EINVAL)
	}
	return shadow.Reply{}
}

func (s *Shadow) guide(request *classad.Ad) shadow.Reply {
	if s.job.Guide != nil {
		n, ad := s.job.Guide(request)
		return shadow.Reply{Value: int64(n), Ad: ad}
	}
	ad := classad.NewAd()
	kind, _ := request.EvalString("RequestType", nil)
	switch kind {
	case "JobSetup", "JobEnvironment":
		ad.SetString("Command", "CarryOn")
		return shadow.Reply{Ad: ad}
	}
	return shadow.Reply{Value: -1, Ad: ad}
}

// sessions are those of the claim, as HTCondor makes them: the key of file
// transfer is that of the claim.
func (s *Shadow) sessions() shadow.Reply {
	reconnect, transfer, err := s.shared()
	if err != nil {
		return refuse(cedar.EINVAL)
	}
	return shadow.Reply{Value: 1, Texts: [6]string{
		reconnect.ID, reconnect.Info, reconnect.Key.Reveal(),
		transfer.ID, transfer.Info, transfer.Key.Reveal(),
	}}
}

func (s *Shadow) shared() (reconnect, transfer shadow.Session, err error) {
	id, err := security.ParseCapabilityID(s.job.Claim.Wire())
	if err != nil {
		return reconnect, transfer, err
	}
	secret := s.job.Claim.Secret.Reveal()
	end := strings.IndexByte(secret, ']') + 1
	reconnect = shadow.Session{ID: id.Session, Info: secret[:end], Key: cedar.Secret(secret[end:])}
	if transfer = s.job.Transfer; transfer.ID == "" {
		transfer = shadow.Session{ID: "filetrans." + id.Session, Info: secret[:end], Key: reconnect.Key}
	}
	return reconnect, transfer, nil
}
