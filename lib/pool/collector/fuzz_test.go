// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

func aToken() string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return part(`{"alg":"HS256","kid":"POOL"}`) + "." + part(`{"iss":"pool.test","sub":"condor@pool.test","iat":1,"jti":"x"}`) + "." + part("12345678901234567890123456789012")
}

// Whatever a collector answers is a token, a request or an error, each bounded.
func FuzzTokenAnswer(f *testing.F) {
	f.Add("RequestId = \"0012345\"\n")
	f.Add("Token = \"" + aToken() + "\"\n")
	f.Add("ErrorString = \"no\\n\"\nErrorCode = 4\nRequestId = \"1\"\n")
	f.Add("Token = \"\"\n")
	f.Add("RequestId = \"../../x y\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		ad, err := classad.ParseAd(text, classad.Old)
		if err != nil {
			return
		}
		a, err := readTokenAnswer(ad)
		token, id := a.token, a.id
		if err != nil {
			if token != "" || !errs.Is(err, errs.Denied) && !errs.Is(err, errs.Broken) {
				t.Errorf("%q with %v", token, err)
			}
			return
		}
		if strings.ContainsAny(token+id, "\n\r\x00 ") || len(token) > 16<<10 || token == "" && len(id) > 64 {
			t.Errorf("token %q, request %q", token, id)
		}
	})
}
