// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"crypto/x509"
	"encoding/hex"
	"testing"
)

// The names are those that OpenSSL 3.0 prints, which map files are written for.
func TestSubjectName(t *testing.T) {
	t.Parallel()
	tests := []struct{ subject, want string }{
		{`3027310b3009060355040613024445310c300a060355040a0c03412f42310a300806035504030c0178`, `/C=DE/O=A\/B/CN=x`},
		{`3029310a3008060355040a0c0170311b300806035504030c0161300f060a0992268993f22c6401010c0162`, `/O=p/CN=a+UID=b`},
		{`30173115301306035504030c0c5a6fc3ab20e282ac20e697a5`, `/CN=Zo\xC3\xAB \xE2\x82\xAC \xE6\x97\xA5`},
		{`308201183114301206092a864886f70d01090116056140622e63310a30080603550405130131310b3009060355040c0c024472310a3008060355042a0c0147310a300806035504040c0153310a300806035504070c014c310b300906035504080c025354310b300906035504090c02537431123010060a0992268993f22c640119160264633111300f060a0992268993f22c6401010c0175310a300806035504110c0170310a3008060355042b0c0169310a3008060355042e130171310b300906035504410c027073310a3008060355040d0c0164310b3009060355040f0c026263310b300906035504290c026e6d310b300906035504610c026f693111300f06092a864886f70d0109020c02756e310b3009060355042c0c026771`, `/emailAddress=a@b.c/serialNumber=1/title=Dr/GN=G/SN=S/L=L/ST=ST/street=St/DC=dc/UID=u/postalCode=p/initials=i/dnQualifier=q/pseudonym=ps/description=d/businessCategory=bc/name=nm/organizationIdentifier=oi/unstructuredName=un/generationQualifier=gq`},
		{`30143112301006035504030c09706c75732b706c7573`, `/CN=plus\+plus`},
		{`30133111300f06035504030c08615c6222632c3d23`, `/CN=a\b"c,=#`},
		{`3041310a300806035504330c0168310a300806035504140c013131133011060b2b0601040182373c0201031302444531123010060a0992268993f22c64011916026464`, `/houseIdentifier=h/telephoneNumber=1/jurisdictionC=DE/DC=dd`},
		{`30193117301506035504031e0e005a006f00eb00200042004d0050`, `/CN=\x00Z\x00o\x00\xEB\x00 \x00B\x00M\x00P`},
		{`30123110300e060355040314075a6feb20543631`, `/CN=Zo\xEB T61`},
		{`3000`, ``},                         // nobody
		{`30123110300e06035504030c0755`, ``}, // cut short
		{`30133111300f06035504030c08615c6222632c3d2300`, ``}, // more than a name
	}
	for _, tt := range tests {
		raw, err := hex.DecodeString(tt.subject)
		if err != nil {
			t.Fatal(err)
		}
		got, err := subjectName(&x509.Certificate{RawSubject: raw})
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v, want %q", tt.subject, got, err, tt.want)
		}
	}
}
