// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Opens a free loop device on the file. It frees itself when the last one who uses it is gone - the caller, then the mount -
// so none is left behind when the node and this driver are killed.
func attach(path string) (*os.File, error) {
	backing, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer backing.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	for tries := 0; tries < 100; tries++ {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("no loop device is free: %w", err)
		}
		loop, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", number), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		err = unix.IoctlLoopConfigure(int(loop.Fd()), &unix.LoopConfig{
			Fd: uint32(backing.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}})
		if err == nil {
			return loop, nil
		}
		loop.Close()
		if !errors.Is(err, unix.EBUSY) { // somebody else was quicker
			return nil, fmt.Errorf("%s: %w", loop.Name(), err)
		}
	}
	return nil, errors.New("no loop device stays free")
}

// Lets the loop device below what is mounted at path see that its file has become larger.
func readSizeAgain(path string) error {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return err
	}
	device, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev)))
	if err != nil {
		return err
	}
	loop, err := os.OpenFile(filepath.Join("/dev", filepath.Base(device)), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer loop.Close()
	return unix.IoctlSetInt(int(loop.Fd()), unix.LOOP_SET_CAPACITY, 0)
}
