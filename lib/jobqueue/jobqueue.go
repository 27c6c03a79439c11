// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"fmt"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// The calls of a connection that was opened with command.QmgmtWrite.
const (
	callSetAttribute      = 10006
	callCommit            = 10007
	callGetAttributeInt   = 10009
	callCloseSocket       = 10028
	callSetEffectiveOwner = 10030
)

// ID is a job's.
type ID struct{ Cluster, Proc int }

// String is HTCondor's way to write it.
func (id ID) String() string { return fmt.Sprintf("%d.%d", id.Cluster, id.Proc) }

// Update sets attributes of a job in one transaction: all or nothing. conn was opened
// with command.QmgmtWrite, and user is the job's User, for whom a daemon acts; "" is
// whoever opened it. The connection is at its end afterwards, and remains the caller's
// to close.
//
// The schedd answers each call with a number, and with an errno behind one below 0.
func Update(conn *cedar.Conn, user string, id ID, attrs *classad.Ad) error {
	if user != "" {
		conn.PutInt(callSetEffectiveOwner)
		conn.PutString(user)
		if err := ask(conn, "SetEffectiveOwner("+user+")"); err != nil {
			return err
		}
	}
	for name, e := range attrs.All() {
		conn.PutInt(callSetAttribute)
		conn.PutInt(int64(id.Cluster))
		conn.PutInt(int64(id.Proc))
		conn.PutString(e.Text(classad.Old))
		conn.PutString(name)
		if err := ask(conn, "SetAttribute("+id.String()+", "+name+")"); err != nil {
			return err
		}
	}
	conn.PutInt(callCommit)
	if err := ask(conn, "CommitTransaction("+id.String()+")"); err != nil {
		return err
	}
	conn.PutInt(callCloseSocket) // has no answer
	return conn.EndMessage()
}

// Int reads an attribute of a job that is an integer. The connection is as with Update.
func Int(conn *cedar.Conn, id ID, name string) (value int64, err error) {
	conn.PutInt(callGetAttributeInt)
	conn.PutInt(int64(id.Cluster))
	conn.PutInt(int64(id.Proc))
	conn.PutString(name)
	if err := conn.EndMessage(); err != nil {
		return 0, err
	}
	found, err := conn.Int()
	if err == nil {
		value, err = conn.Int() // or the errno
	}
	if err == nil {
		err = conn.EndOfMessage()
	}
	if err != nil {
		return 0, err
	}
	if found < 0 {
		return 0, errs.E("jobqueue.Int", errs.NotFound, "GetAttributeInt("+id.String()+", "+name+")", fmt.Errorf("the schedd answers %d, errno %d", found, value))
	}
	conn.PutInt(callCloseSocket)
	return value, conn.EndMessage()
}

// ask sends a call and reads its answer.
func ask(conn *cedar.Conn, what string) error {
	const op = "jobqueue.Update"
	if err := conn.EndMessage(); err != nil {
		return err
	}
	value, err := conn.Int()
	if err != nil {
		return err
	}
	var number int64
	if value < 0 {
		if number, err = conn.Int(); err != nil {
			return err
		}
	}
	why := ""
	if conn.More() { // a commit may be answered with an ad beside
		ad, err := conn.Ad(cedar.AdOptions{})
		if err != nil {
			return err
		}
		why, _ = ad.EvalString("ErrorReason", nil)
	}
	if err := conn.EndOfMessage(); err != nil {
		return err
	}
	if value < 0 {
		return errs.E(op, errs.Denied, what, fmt.Errorf("the schedd answers %d, errno %d %s", value, number, why))
	}
	return nil
}
