// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// Who may reach into a job is said by these knobs: what begins like this, with
// or without a daemon in front, and these names.
var (
	securityPrefixes = [...]string{"ALLOW_", "AUTH_SSL_", "CERTIFICATE_MAPFILE", "DENY_", "FS_", "SEC_"}
	securityNames    = [...]string{
		"AUTHENTICATION_TIMEOUT", "CONDOR_ANONYMOUS_USER", "FULL_HOSTNAME", "LEGACY_ALLOW_SEMANTICS", "LOCAL_CONFIG_DIR_EXCLUDE_REGEXP",
		"SSL_SKIP_HOST_CHECK", "TRUST_DOMAIN", "UID_DOMAIN", "USE_POOL_USERNAME_EQUIVALENT",
	}
)

// securityText is what a configuration says about security, as the text of a
// configuration in which nothing is left to expand.
func securityText(s *config.Snapshot) string {
	var out strings.Builder
	seen := make(map[string]bool)
	for _, row := range s.Rows() {
		name := row.Name
		plain := strings.ToUpper(name)
		if daemon, rest, ok := strings.Cut(plain, "."); ok {
			if daemon != "STARTER" {
				continue
			}
			plain = rest
		}
		if !slices.ContainsFunc(securityPrefixes[:], func(p string) bool { return strings.HasPrefix(plain, p) }) && !slices.Contains(securityNames[:], plain) {
			continue
		}
		set, ok := s.Lookup(name)
		// A default of one level would hide what another says, and is the same
		// at the starter unless it names a place of this configuration.
		if !ok || set.Value == "" || set.IsDefault && !strings.Contains(set.Raw, "$(") || seen[strings.ToUpper(name)] {
			continue
		}
		seen[strings.ToUpper(name)] = true
		value := strings.ReplaceAll(set.Value, "$", "$(DOLLAR)")
		if strings.Contains(value, "\n") {
			fmt.Fprintf(&out, "%s @=end_of_value\n%s\n@end_of_value\n", name, value)
			continue
		}
		fmt.Fprintf(&out, "%s = %s\n", name, value)
	}
	return out.String()
}
