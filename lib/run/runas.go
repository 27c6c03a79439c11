// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// namesPatience bounds the question which names a submit machine has.
const namesPatience = 5 * time.Second

// runAs is all that decides as whom a job runs, on an Execution Point that may
// choose. It is a value: ads are read when it is made.
type runAs struct {
	submitter string // the name at the access point, "" if it does not say
	domain    string // in which that name means somebody
	owner     bool   // the job wants to run as its submitter, and STARTER_ALLOW_RUNAS_OWNER allows it

	uidDomain  string         // UID_DOMAIN
	trust      bool           // TRUST_UID_DOMAIN
	trustLocal bool           // TRUST_LOCAL_UID_DOMAIN
	soft       bool           // SOFT_UID_DOMAIN
	nobody     string         // SLOT<N>_USER, NOBODY_SLOT_USER or nobody
	dedicated  *regexp.Regexp // DEDICATED_EXECUTE_ACCOUNT_REGEXP, for the whole name; nil for no account
	problem    error          // of that

	local bool     // the access point is on this machine
	here  bool     // it is the embedded one, whose submitters are users of this machine
	hosts []string // names of the machine of the access point
}

// runAsHere is runAsFrom for a job of the embedded access point, whose files are
// owner's. nil is root, who is no job's user: root's jobs have no account of their
// own.
func runAsHere(s *config.Snapshot, id slot.ID, machine, job *classad.Ad, owner *host.Identity) runAs {
	r := runAsFrom(s, id, machine, job)
	r.submitter, r.here, r.soft = "", true, false
	if owner != nil {
		r.submitter = owner.Name
	}
	return r
}

// Nobody is the account of jobs without one of their own, in a slot that has none
// for itself.
func Nobody(s *config.Snapshot) string { return slotAccount(s, slot.ID{}) }

// JobUsers names as whom the jobs of the embedded access point run, whose files
// are owner's, nil for root's, where account finds users. An error says why one of
// them cannot run.
func JobUsers(s *config.Snapshot, account func(string) (*host.Identity, error), owner *host.Identity, jobs []*classad.Ad) ([]string, error) {
	bySlot := protocol.UsersBySlot(s)
	if err := usersOfSlots(s, account); err != nil {
		return nil, err
	}
	always := s.String("STARTER_ALLOW_RUNAS_OWNER") == ""
	asked := make(map[bool]bool)
	var names []string
	for _, job := range jobs {
		wants, said := job.EvalBool("RunAsOwner", nil)
		if wants = wants || !said; always && asked[wants] {
			continue
		}
		asked[wants] = true
		r := runAsHere(s, slot.ID{}, classad.NewAd(), job, owner)
		name, own := r.wanted()
		if !own && bySlot {
			name = "the users of SLOT<N>_USER and NOBODY_SLOT_USER"
		} else if _, err := r.identity(account); err != nil {
			return nil, err
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// usersOfSlots says which account of a slot is no job's.
func usersOfSlots(s *config.Snapshot, account func(string) (*host.Identity, error)) error {
	for _, knob := range s.Names() {
		name := strings.TrimSpace(s.String(knob))
		if !protocol.IsUserOfSlot(knob) || name == "" || name == "root" {
			continue
		}
		r := runAs{nobody: name}
		if _, err := r.identity(account); err != nil {
			return fmt.Errorf("%s: %w", knob, err)
		}
	}
	return nil
}

// runAsFrom reads the configuration, as the starter in that slot does, and the job.
func runAsFrom(s *config.Snapshot, id slot.ID, machine, job *classad.Ad) runAs {
	truth := func(name string) bool { yes, err := s.Bool(name); return err == nil && yes }
	wants, said := job.EvalBool("RunAsOwner", nil)
	domain, ok := job.EvalString("UidDomain", nil)
	if !ok {
		user, _ := job.EvalString("User", nil)
		_, domain, _ = strings.Cut(user, "@")
	}
	r := runAs{
		submitter: submitter(job), domain: domain, owner: (wants || !said) && allowsOwner(s, machine, job),
		uidDomain: s.String("UID_DOMAIN"),
		trust:     truth("TRUST_UID_DOMAIN"), trustLocal: truth("TRUST_LOCAL_UID_DOMAIN"), soft: truth("SOFT_UID_DOMAIN"),
		nobody: slotAccount(s, id),
	}
	switch text := s.String("DEDICATED_EXECUTE_ACCOUNT_REGEXP"); {
	case text != "":
		var err error
		if r.dedicated, err = regexp.Compile("^(?:" + text + ")$"); err != nil {
			r.problem = errs.E("run.RunAs", errs.Invalid, "DEDICATED_EXECUTE_ACCOUNT_REGEXP", err)
		}
	case truth("EXECUTE_LOGIN_IS_DEDICATED"):
		r.dedicated = regexp.MustCompile("")
	}
	return r
}

// nobody is who runs the jobs of people that this machine does not know.
const nobody = "nobody"

// slotAccount is who runs them in one slot: SLOT1_2_USER for slot1_2, else
// SLOT1_USER, else NOBODY_SLOT_USER, in which $(STARTER_SLOT_NAME) is the slot's
// name. Root is nobody.
func slotAccount(s *config.Snapshot, id slot.ID) string {
	name := ""
	if id.Sub > 0 {
		name = s.String("SLOT" + strconv.Itoa(id.N) + "_" + strconv.Itoa(id.Sub) + "_USER")
	}
	if name == "" {
		name = s.String("SLOT" + strconv.Itoa(id.N) + "_USER")
	}
	if name == "" {
		// By that macro each slot has an account of its own.
		slotName := regexp.MustCompile(`(?i)\$\(STARTER_SLOT_NAME\)`)
		set, _ := s.Lookup("NOBODY_SLOT_USER")
		name = set.Value
		if text := slotName.ReplaceAllLiteralString(set.Raw, id.String()); text != set.Raw {
			name, _ = s.Expand(text) // its error is that of the knob
		}
	}
	if name = strings.TrimSpace(name); name == "" || name == "root" {
		return nobody
	}
	return name
}

// wanted is the account as which the job runs. owner says that it is the
// submitter's own.
func (r *runAs) wanted() (name string, owner bool) {
	if r.submitter != "" && r.mayBeOwner() {
		return r.submitter, true
	}
	// The owner of the machine names one user for a slot, or for all; else
	// there is one that owns nothing.
	return r.nobody, false
}

// submitter is the name of who submitted the job, at the access point.
func submitter(job *classad.Ad) string {
	for _, attr := range [...]string{"OsUser", "Owner"} {
		if name, ok := job.EvalString(attr, nil); ok && name != "" {
			name, _, _ = strings.Cut(name, "@")
			return name
		}
	}
	return ""
}

// mayBeOwner reports whether the job may run as its submitter: the owner of the
// machine allows it, the job does not decline, and the name means the same
// person here.
func (r *runAs) mayBeOwner() bool { return r.owner && (r.here || r.sameDomain()) }

// allowsOwner evaluates STARTER_ALLOW_RUNAS_OWNER for a job. Unset it is true.
func allowsOwner(s *config.Snapshot, machine, job *classad.Ad) bool {
	x, err := s.Expression("STARTER_ALLOW_RUNAS_OWNER")
	if x == nil {
		return err == nil
	}
	yes, _ := x.IsTrue(&classad.Env{My: machine, Target: job})
	return yes
}

// sameDomain reports whether names of users at the access point are names of
// users here: it says so, and is believed.
func (r *runAs) sameDomain() bool {
	if r.uidDomain == "" || !strings.EqualFold(r.domain, r.uidDomain) {
		return false
	}
	if r.trust || r.trustLocal && r.local {
		return true
	}
	for _, h := range r.hosts {
		h = strings.TrimSuffix(h, ".")
		if strings.EqualFold(h, r.uidDomain) || len(h) > len(r.uidDomain) &&
			strings.EqualFold(h[len(h)-len(r.uidDomain)-1:], "."+r.uidDomain) {
			return true
		}
	}
	return false
}

// chosen is as whom a job runs.
type chosen struct {
	user *host.Identity // nil: ask says who
	// ask is the name of somebody without an account here, whose numbers the
	// shadow knows (SOFT_UID_DOMAIN).
	ask       string
	dedicated bool // the account is for one job at a time and nothing else
}

// identity looks the account up. An error says why the job cannot be run: it
// never runs as the Execution Point itself.
func (r *runAs) identity(account func(string) (*host.Identity, error)) (chosen, error) {
	const op = "run.RunAs"
	if r.problem != nil {
		return chosen{}, r.problem
	}
	name, owner := r.wanted()
	id, err := account(name)
	switch {
	case err == nil && (id == nil || id.UID == 0 || id.GID == 0):
		return chosen{}, errs.E(op, errs.Denied, name, errors.New("no job runs as root or with the group of root"))
	case err == nil:
		return chosen{user: id, dedicated: r.dedicated != nil && r.dedicated.MatchString(id.Name)}, nil
	case owner && errs.Is(err, errs.NotFound) && r.soft:
		return chosen{ask: name, dedicated: r.dedicated != nil && r.dedicated.MatchString(name)}, nil
	case owner && errs.Is(err, errs.NotFound):
		err = errs.E("", errs.NotFound, name, fmt.Errorf("the submitter has no account here: %w", err))
	}
	return chosen{}, errs.E(op, errs.KindOf(err), "", err)
}

// Admit says why no user of this machine could be found for a job of a pool, of
// the shadow at nc; nil if one can. account is nil where the Execution Point
// cannot choose. s is the configuration as the starter in that slot reads it.
func Admit(ctx context.Context, s *config.Snapshot, account func(string) (*host.Identity, error), id slot.ID, job *classad.Ad, nc net.Conn) error {
	if account == nil {
		return nil
	}
	r := runAsFrom(s, id, classad.NewAd(), job)
	r.local, r.hosts = peerOf(ctx, nc, r)
	_, err := r.identity(account)
	return err
}

// peerOf finds out where the access point is: on this machine, or on one with
// these names. Names are asked for only where they matter, and count only if
// they lead back.
func peerOf(ctx context.Context, nc net.Conn, r runAs) (local bool, names []string) {
	from, ok := nc.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return true, nil
	}
	here, ok := nc.LocalAddr().(*net.TCPAddr)
	local = from.IP.IsLoopback() || ok && here.IP.Equal(from.IP)
	if r.local = local; r.mayBeOwner() {
		return local, nil
	}
	r.trust = true
	if !r.mayBeOwner() {
		return local, nil // no name would change it
	}
	ctx, cancel := context.WithTimeout(ctx, namesPatience)
	defer cancel()
	found, err := net.DefaultResolver.LookupAddr(ctx, from.IP.String())
	if err != nil {
		return local, nil
	}
	for _, name := range found {
		back, err := net.DefaultResolver.LookupIP(ctx, "ip", name)
		if err != nil {
			continue
		}
		for _, ip := range back {
			if ip.Equal(from.IP) {
				names = append(names, name)
				break
			}
		}
	}
	return local, names
}
