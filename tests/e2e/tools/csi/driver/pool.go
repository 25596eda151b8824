// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The volumes: sparse files. What their sizes come to is what the pool has given away.
type pool struct {
	dir     string
	largest int64
	total   int64
	lock    sync.Mutex
}

func (p *pool) file(id string) string { return filepath.Join(p.dir, filepath.Base(id)) }

func (p *pool) used() (int64, error) {
	entries, err := os.ReadDir(p.dir)
	sum := int64(0)
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return 0, err
		}
		sum += info.Size()
	}
	return sum, err
}

// What it would be given is said whether it may be: a volume never shrinks.
func (p *pool) check(size, now int64) error {
	if size > p.largest {
		return status.Errorf(codes.OutOfRange, "%d bytes are asked for, and no volume may have more than %d", size, p.largest)
	}
	used, err := p.used()
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if used-now+size > p.total {
		return status.Errorf(codes.ResourceExhausted, "%d bytes are asked for, and the pool has %d left", size-now, p.total-used)
	}
	return nil
}

// Makes the volume's file, or makes it larger; says how large it is then.
func (p *pool) provide(id string, size int64, mayCreate bool) (int64, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	now := int64(0)
	info, err := os.Stat(p.file(id))
	if err == nil {
		now = info.Size()
	} else if !os.IsNotExist(err) || !mayCreate {
		return 0, status.Error(codes.NotFound, err.Error())
	}
	if size <= now {
		return now, nil
	}
	if err := p.check(size, now); err != nil {
		return 0, err
	}
	file, err := os.OpenFile(p.file(id), os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = file.Truncate(size)
		file.Close()
	}
	if err != nil {
		return 0, status.Error(codes.Internal, err.Error())
	}
	return size, nil
}

func (p *pool) remove(id string) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	if err := os.Remove(p.file(id)); err != nil && !os.IsNotExist(err) {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}
