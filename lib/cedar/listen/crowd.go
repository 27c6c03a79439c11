// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

// crowd is a set of connections in the order of their arrival, for each peer
// apart. The zero value is empty.
type crowd struct {
	n      int
	queues map[string]*queue
	spare  *queue // an empty one, for the peer that comes and goes with each command
}

// queue is the part of a crowd that one peer makes.
type queue struct {
	first, last *entry
	n           int
}

// add puts e behind the others of its key.
func (c *crowd) add(e *entry) {
	q := c.queues[e.key]
	if q == nil {
		if c.queues == nil {
			c.queues = make(map[string]*queue)
		}
		if q, c.spare = c.spare, nil; q == nil {
			q = new(queue)
		}
		c.queues[e.key] = q
	}
	e.crowd, e.before, e.behind = c, q.last, nil
	if q.last == nil {
		q.first = e
	} else {
		q.last.behind = e
	}
	q.last = e
	q.n++
	c.n++
}

// remove takes e out of the crowd it is in, if any.
func (e *entry) remove() {
	c := e.crowd
	if c == nil {
		return
	}
	q := c.queues[e.key]
	if e.before == nil {
		q.first = e.behind
	} else {
		e.before.behind = e.behind
	}
	if e.behind == nil {
		q.last = e.before
	} else {
		e.behind.before = e.before
	}
	e.crowd, e.before, e.behind = nil, nil, nil
	c.n--
	if q.n--; q.n == 0 {
		delete(c.queues, e.key)
		c.spare = q
	}
}

// oldestOf returns the connection of one peer that has been there longest.
func (c *crowd) oldestOf(key string) *entry {
	if q := c.queues[key]; q != nil {
		return q.first
	}
	return nil
}

// oldest returns the connection that has been there longest of the peer that
// has the most in the crowd, nil of an empty one.
func (c *crowd) oldest() *entry {
	var most *queue
	for _, q := range c.queues {
		if most == nil || q.n > most.n || q.n == most.n && q.first.order < most.first.order {
			most = q
		}
	}
	if most == nil {
		return nil
	}
	return most.first
}
