// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// drain carries out a drain command, given its options. The core has no event
// for it, so it is refused.
func (w *world) drain(options []string) error {
	return errs.E("simulate.Drain", errs.Unsupported, "", fmt.Errorf("this Execution Point cannot be drained (%s)", strings.Join(options, " ")))
}
