// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package words_test

import (
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/tool/words"
)

func Example() {
	fmt.Println(words.Size(3 << 29))
	fmt.Println(words.Short(252 * time.Second))
	fmt.Println(words.Printable("job\x1b[2J"))
	fmt.Println(words.Fit("617 done, 16 running", 8))
	// Output:
	// 1.5 GiB
	// 4 min 12 s
	// job\x1b[2J
	// 617 done
}
