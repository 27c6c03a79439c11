// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package daemon

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/platform/linux/bound"
)

// cell is one way to run, secure and reach an Execution Point.
type cell struct {
	master bool   // condor_master runs it; else it runs by itself
	method string // of authentication, the only one that the Execution Points know
	shared bool   // behind a shared port of its own
	broker bool   // reached through CCB
	quick  bool   // among those that always run
	// ap says how the access point is behind a broker, "" if it is not: with
	// sockets of its own, or with a shared port.
	ap apBroker
	// unrelayed has no broker relay for the Execution Points.
	unrelayed bool
}

// apBroker is how an access point is behind a broker.
type apBroker string

const (
	apOwnPorts   apBroker = "AP with ports behind CCB"
	apSharedPort apBroker = "AP with a shared port behind CCB"
	apTunnel     apBroker = "AP with ports behind CCB behind CCB"
)

// lines are what the pool's configuration has for it. Its own tools and the
// negotiator are in its network; nobody of the Execution Points is.
func (b apBroker) lines() string {
	if b == "" {
		return ""
	}
	var s strings.Builder
	for _, who := range [...]string{"SCHEDD", "SHADOW", "TOOL", "SUBMIT", "NEGOTIATOR", "SHARED_PORT"} {
		s.WriteString(who + ".PRIVATE_NETWORK_NAME = office\n")
	}
	if b == apSharedPort {
		return s.String() + "SCHEDD.USE_SHARED_PORT = True\nSHADOW.USE_SHARED_PORT = True\nSHARED_PORT.CCB_ADDRESS = $(COLLECTOR_HOST)\nSHARED_PORT_DEBUG = D_FULLDEBUG\n"
	}
	if b == apTunnel {
		// Which broker, is known once it listens. Those without a relay are called
		// back by the outer one, which by default connects to no loopback.
		return s.String() + "CCB_OUTBOUND_TARGET_DENYLIST =\n"
	}
	return s.String() + "SCHEDD.CCB_ADDRESS = $(COLLECTOR_HOST)\nSHADOW.CCB_ADDRESS = $(COLLECTOR_HOST)\n"
}

// String names the subtest.
func (m cell) String() string {
	pick := func(is bool, yes, no string) string {
		if is {
			return yes
		}
		return no
	}
	where := []string{m.method, pick(m.master, "master", "alone"), pick(m.shared, "shared port", "own port"), pick(m.broker, "CCB", "direct")}
	if m.ap != "" {
		where = append(where, string(m.ap))
	}
	if m.unrelayed {
		where = append(where, "not relayed")
	}
	return strings.Join(where, ", ")
}

// arena is a pool with two Execution Points, the original's and ours, that
// have the same configuration.
type arena struct {
	*realpool.Pool
	cell
	t      *testing.T
	schedd *realpool.Daemon
	sides  [2]*realpool.EP // the original, ours
}

// required is what every cell demands of every session. The daemons of the pool
// are no family, for no condor_master started them; that they are all on one
// machine makes them believe so.
const required = `
SEC_USE_FAMILY_SESSION = False
SEC_DEFAULT_AUTHENTICATION = REQUIRED
SEC_READ_AUTHENTICATION = REQUIRED
SEC_CLIENT_AUTHENTICATION = REQUIRED
SEC_DEFAULT_ENCRYPTION = REQUIRED
SEC_DEFAULT_INTEGRITY = REQUIRED
ENABLE_STARTD_DAEMON_AD = True
COLLECTOR_DEBUG = D_SECURITY D_COMMAND D_FULLDEBUG
SCHEDD_DEBUG = D_SECURITY D_FULLDEBUG
STARTER_INITIAL_UPDATE_INTERVAL = 1
STARTER_UPDATE_INTERVAL = 2
SHADOW_QUEUE_UPDATE_INTERVAL = 2
`

// newArena starts everything and waits until both are shown.
func newArena(t *testing.T, m cell) *arena {
	t.Helper()
	realpool.Patient(t)
	a := &arena{cell: m, t: t, Pool: realpool.New(t, required+"SEC_DEFAULT_AUTHENTICATION_METHODS = FS, "+m.method+"\n"+secretLines[m.method]+m.ap.lines())}
	a.secrets()
	a.schedd = a.BeginWith(func() {
		if m.ap == apSharedPort {
			a.sharedPort(a.Dir, a.Config)
		}
		if m.ap == apTunnel {
			a.inner()
		}
	})
	for i, kind := range [...]string{realpool.Original, realpool.Ours} {
		a.sides[i] = a.point(kind)
	}
	for _, e := range a.sides {
		a.Eventually("the collector shows "+e.Name, realpool.Patience, func(ctx context.Context) error {
			out, err := a.Run(ctx, "condor_status", "-af", "Name", "-constraint", fmt.Sprintf("Rig == %q", e.Name))
			if err == nil && strings.TrimSpace(out) != "slot1@"+e.Host() {
				err = fmt.Errorf("condor_status shows %q; the log:\n%s", out, realpool.Last(e.Log("StartLog"), 12))
			}
			return err
		})
	}
	return a
}

// point starts an Execution Point as the cell says.
func (a *arena) point(kind string) *realpool.EP {
	a.TB.Helper()
	lines := fmt.Sprintf("SEC_PASSWORD_DIRECTORY = %s/passwords.d\nSEC_DEFAULT_AUTHENTICATION_METHODS = %s\nMASTER_NAME = %s\nDAEMON_LIST = MASTER, STARTD\nSEC_USE_FAMILY_SESSION = True\nSTARTD_DEBUG = D_SECURITY D_COMMAND\nSHARED_PORT_DEBUG = D_FULLDEBUG\n",
		a.Dir, a.method, kind)
	if !a.Version.AtLeast(25, 0, 0) {
		lines += "SEC_USE_FAMILY_SESSION = False\n" // this original takes the collector for a relative, whoever started it
	}
	if a.shared {
		lines += "USE_SHARED_PORT = True\nSHARED_PORT_PORT = 0\n"
	}
	if a.broker {
		lines += "CCB_ADDRESS = $(COLLECTOR_HOST)\nPRIVATE_NETWORK_NAME = beyond\n" // so that nobody comes directly
	}
	if a.ap != "" {
		lines += "SEC_USE_FAMILY_SESSION = False\n" // the original would begin with it at the broker too, which is of another family
		lines += "ENABLE_PERSISTENT_CONFIG = True\nPERSISTENT_CONFIG_DIR = $(LOCAL_DIR)/spool\nSTARTD_DIRECT_ATTACH_INTERVAL = 2\n"
	}
	if a.unrelayed {
		lines += "CCB_CLIENT_STREAMING = False\n"
	}
	if a.master && kind == "ours" {
		lines += "USE_PID_NAMESPACES = True\n" // the original has them under root alone
	}
	e := a.NewEP(kind, 4, lines)
	if a.method == "IDTOKENS" {
		a.token(filepath.Join(e.Dir, "tokens.d"), kind+"@execpoint.test")
	}
	config := filepath.Join(e.Dir, "condor_config")
	if a.master {
		a.daemon(config, "condor_master", "-f")
		return e
	}
	if a.shared {
		a.sharedPort(e.Dir, config)
	}
	e.Start()
	a.TB.Cleanup(func() { e.Stop(syscall.SIGQUIT, 20*time.Second) })
	return e
}

// inner runs a broker that is behind the pool's, and has the access point be
// behind that one.
func (a *arena) inner() {
	a.TB.Helper()
	dir := filepath.Join(a.Dir, "inner")
	for _, sub := range []string{"log", "spool", "lock", "run"} {
		a.Mkdir(filepath.Join(dir, sub))
	}
	text, err := os.ReadFile(a.Config)
	a.Must(err)
	address := filepath.Join(dir, "log", ".collector_address")
	config := filepath.Join(dir, "condor_config")
	a.Write(config, fmt.Sprintf("include : %s\nLOCAL_DIR = %s\nCCB_OUTBOUND_NEXT_HOP = $(COLLECTOR_HOST)\nCOLLECTOR_ADDRESS_FILE = %s\nCOLLECTOR.SEC_USE_FAMILY_SESSION = False\n", a.Config, dir, address), 0o644)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	a.Must(err)
	port := l.Addr().(*net.TCPAddr).Port
	a.Must(l.Close())
	a.daemon(config, "condor_collector", "-f", "-p", fmt.Sprint(port))
	at := ""
	a.Eventually("the inner broker says where it is", realpool.Patience, func(context.Context) error {
		b, err := os.ReadFile(address)
		at, _, _ = strings.Cut(string(b), "\n")
		if err == nil && !strings.HasPrefix(at, "<") {
			err = fmt.Errorf("%q", b)
		}
		return err
	})
	a.Must(os.WriteFile(a.Config, append(text, "SCHEDD.CCB_ADDRESS = "+at+"\nSHADOW.CCB_ADDRESS = "+at+"\n"...), 0o644))
}

// sharedPort runs the shared port of whoever lives in dir without
// condor_master.
func (a *arena) sharedPort(dir, config string) {
	a.TB.Helper()
	for range 5 {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		a.Must(err)
		port := l.Addr().(*net.TCPAddr).Port
		a.Must(l.Close())
		ended := a.daemon(config, "condor_shared_port", "-f", "-p", fmt.Sprint(port))
		err = realpool.Until(a.TB.Context(), realpool.Patience, 50*time.Millisecond, func(context.Context) error {
			select {
			case <-ended: // another process was faster to take the port
				return nil
			default:
			}
			b, err := os.ReadFile(filepath.Join(dir, "lock", "shared_port_ad"))
			if err == nil && !bytes.Contains(b, []byte("MyAddress")) {
				err = fmt.Errorf("its ad is %q", b)
			}
			return err
		})
		a.Must(err)
		select {
		case <-ended:
		default:
			return
		}
	}
	log, _ := os.ReadFile(filepath.Join(dir, "log", "SharedPortLog"))
	a.TB.Fatalf("the shared port of %s ends by itself:\n%s", dir, realpool.Last(string(log), 12))
}

// daemon runs a real daemon with another configuration until the test ends.
// The channel is closed when it is gone.
func (a *arena) daemon(config, program string, args ...string) <-chan struct{} {
	a.TB.Helper()
	cmd := a.Command(context.Background(), program, args...)
	cmd.Env = append(cmd.Env, "CONDOR_CONFIG="+config)
	a.Must(bound.Start(cmd))
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	a.TB.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		<-ended
	})
	return ended
}

// secretLines name what secrets makes.
var secretLines = map[string]string{
	"IDTOKENS": "SEC_TOKEN_DIRECTORY = $(LOCAL_DIR)/tokens.d\n",
	"PASSWORD": "SEC_PASSWORD_FILE = @DIR@/passwords.d/POOL\n",
	// Names of hosts are checked, so everybody calls the collector by one.
	"SSL": `CONDOR_HOST = localhost
COLLECTOR_HOST = localhost:@PORT@
CERTIFICATE_MAPFILE = @DIR@/map
AUTH_SSL_REQUIRE_CLIENT_CERTIFICATE = True
AUTH_SSL_SERVER_CAFILE = @DIR@/ca.pem
AUTH_SSL_SERVER_CERTFILE = @DIR@/node.pem
AUTH_SSL_SERVER_KEYFILE = @DIR@/node.key
AUTH_SSL_SERVER_USE_DEFAULT_CAS = False
AUTH_SSL_CLIENT_CAFILE = @DIR@/ca.pem
AUTH_SSL_CLIENT_CERTFILE = @DIR@/node.pem
AUTH_SSL_CLIENT_KEYFILE = @DIR@/node.key
AUTH_SSL_CLIENT_USE_DEFAULT_CAS = False
`,
}

// secrets makes what the method needs.
func (a *arena) secrets() {
	a.TB.Helper()
	key := make([]byte, 64)
	_, _ = rand.Read(key) // never fails
	a.Write(filepath.Join(a.Dir, "passwords.d", "POOL"), string(key), 0o600)
	switch a.method {
	case "IDTOKENS":
		a.token(filepath.Join(a.Dir, "tokens.d"), "somebody@execpoint.test")
	case "SSL":
		a.certificates()
		a.Write(filepath.Join(a.Dir, "map"), "SSL ^.*CN=node.*$ node@execpoint.test\nFS ^(.*)$ \\1@execpoint.test\n", 0o644)
	}
}

// token has the real tool sign a token with the pool's key.
func (a *arena) token(dir, identity string) {
	a.TB.Helper()
	config := filepath.Join(a.Dir, "issuer_config")
	a.Write(config, fmt.Sprintf("LOCAL_DIR = %s\nLOCAL_CONFIG_DIR =\nSEC_PASSWORD_DIRECTORY = %s/passwords.d\nTRUST_DOMAIN = execpoint.test\nLOG = %s/log\n", a.Dir, a.Dir, a.Dir), 0o644)
	cmd := a.Command(a.TB.Context(), "condor_token_create", "-identity", identity)
	cmd.Env = append(cmd.Env, "CONDOR_CONFIG="+config)
	var bad bytes.Buffer
	cmd.Stderr = &bad
	out, err := cmd.Output()
	if err != nil {
		a.TB.Fatalf("condor_token_create: %v\n%s", err, bad.String())
	}
	a.Write(filepath.Join(dir, "pool"), string(out), 0o600)
}

// certificates makes an authority and a certificate for all hosts of the pool.
func (a *arena) certificates() {
	a.TB.Helper()
	name, err := os.Hostname()
	a.Must(err)
	names := []string{name, "localhost"}
	if full, err := net.LookupCNAME(name); err == nil {
		names = append(names, strings.TrimSuffix(full, "."))
	}
	now := time.Now()
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	node := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node"}, NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.Must(err)
	nodeKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.Must(err)
	write := func(file, kind string, der []byte, err error) {
		a.TB.Helper()
		a.Must(err)
		a.Write(filepath.Join(a.Dir, file), string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})), 0o600)
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, &rootKey.PublicKey, rootKey)
	write("ca.pem", "CERTIFICATE", der, err)
	der, err = x509.CreateCertificate(rand.Reader, node, root, &nodeKey.PublicKey, rootKey)
	write("node.pem", "CERTIFICATE", der, err)
	der, err = x509.MarshalPKCS8PrivateKey(nodeKey)
	write("node.key", "PRIVATE KEY", der, err)
}
