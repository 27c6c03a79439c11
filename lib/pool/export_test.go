// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import "github.com/execpoint/execpoint/lib/classad"

// Flush has what changed sent without waiting for more.
func (p *Pool) Flush() { signal(p.news.now) }

// ReadTokenAnswer is readTokenAnswer: the token and the number of the request.
func ReadTokenAnswer(ad *classad.Ad) (token, id string, err error) {
	a, err := readTokenAnswer(ad)
	return a.token, a.id, err
}
