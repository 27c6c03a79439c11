// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"fmt"
	"math"

	"github.com/execpoint/execpoint/lib/errs"
)

// order is the size of Linpack's classic problem.
const order = 100

// system is the workload on real numbers, as Linpack (J. Dongarra and others,
// 1979) describes it: a dense system of linear equations in double precision,
// solved by elimination with partial pivoting and substitution.
type system struct {
	n        int
	original [][]float64 // by column
	columns  [][]float64 // what the elimination works on
	right    []float64
}

// newSystem returns a system whose solution is 1 in every place.
func newSystem(n int) *system {
	s := &system{n: n, right: make([]float64, n)}
	seed := uint32(1325)
	for range n {
		column := make([]float64, n)
		for i := range column {
			seed = seed*1664525 + 1013904223
			column[i] = float64(seed)/(1<<32) - 0.5
		}
		s.original = append(s.original, column)
		s.columns = append(s.columns, make([]float64, n))
	}
	return s
}

// operations is how many additions and multiplications one solution counts as:
// those of the elimination and of the substitution, not the search for pivots.
func (s *system) operations() float64 {
	n := float64(s.n)
	return 2*n*n*n/3 + 2*n*n
}

// solve makes the system anew, solves it and checks the solution.
func (s *system) solve() error {
	clear(s.right)
	for j, column := range s.original {
		copy(s.columns[j], column)
		axpy(1, column, s.right)
	}
	if !s.eliminate() {
		return errs.E("", errs.Broken, "", fmt.Errorf("the machine calculates wrongly: no pivot"))
	}
	s.substitute()
	for i, x := range s.right {
		if !(math.Abs(x-1) < 1e-8) {
			return errs.E("", errs.Broken, "", fmt.Errorf("the machine calculates wrongly: %g in place %d instead of 1", x, i))
		}
	}
	return nil
}

// eliminate brings the columns into upper triangular form and does the same to
// the right side.
func (s *system) eliminate() bool {
	for k := range s.n {
		pivotColumn := s.columns[k]
		p := k
		for i := k + 1; i < s.n; i++ {
			if math.Abs(pivotColumn[i]) > math.Abs(pivotColumn[p]) {
				p = i
			}
		}
		if pivotColumn[p] == 0 {
			return false
		}
		pivotColumn[k], pivotColumn[p] = pivotColumn[p], pivotColumn[k]
		factors := pivotColumn[k+1:]
		inverse := -1 / pivotColumn[k]
		for i := range factors {
			factors[i] *= inverse
		}
		for _, column := range s.columns[k+1:] {
			column[k], column[p] = column[p], column[k]
			axpy(column[k], factors, column[k+1:])
		}
		s.right[k], s.right[p] = s.right[p], s.right[k]
		axpy(s.right[k], factors, s.right[k+1:])
	}
	return true
}

// substitute solves the triangular system from its last row on.
func (s *system) substitute() {
	for k := s.n - 1; k >= 0; k-- {
		s.right[k] /= s.columns[k][k]
		axpy(-s.right[k], s.columns[k][:k], s.right[:k])
	}
}

// axpy adds a times x to y.
func axpy(a float64, x, y []float64) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += a * v
	}
}
