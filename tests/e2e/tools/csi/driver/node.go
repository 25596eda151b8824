// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What the node does: mounts, and file systems that grow. It runs where the kubelet runs and sees the same mounts.
type mounter struct {
	csi.UnimplementedNodeServer
	pool *pool
}

func failed(err error) error {
	if err == nil {
		return nil
	}
	return status.Error(codes.Internal, err.Error())
}

func run(program string, arguments ...string) error {
	if said, err := exec.Command(program, arguments...).CombinedOutput(); err != nil {
		return status.Errorf(codes.Internal, "%s %v: %v: %s", program, arguments, err, said)
	}
	return nil
}

// Something is mounted at path when it is on another device than the directory that it is in.
func isMounted(path string) bool {
	var here, above unix.Stat_t
	return unix.Stat(path, &here) == nil && unix.Stat(filepath.Dir(path), &above) == nil && here.Dev != above.Dev
}

func unmount(path string) error {
	if !isMounted(path) {
		return nil
	}
	return failed(unix.Unmount(path, 0))
}

func hasFileSystem(path string) (bool, error) {
	magic := make([]byte, 4)
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	_, err = file.ReadAt(magic, 0)
	return string(magic) == "XFSB", err
}

func (mounter) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: *node}, nil
}

func (mounter) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	answer := &csi.NodeGetCapabilitiesResponse{}
	for _, what := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, csi.NodeServiceCapability_RPC_EXPAND_VOLUME} {
		answer.Capabilities = append(answer.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: what}}})
	}
	return answer, nil
}

// Once a volume on a node: the file system, made where there is none yet.
func (m mounter) NodeStageVolume(_ context.Context, request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	file, path := m.pool.file(request.VolumeId), request.StagingTargetPath
	answer := &csi.NodeStageVolumeResponse{}
	if isMounted(path) {
		return answer, nil
	}
	made, err := hasFileSystem(file)
	if err == nil && !made {
		err = run("mkfs.xfs", "-q", file)
	}
	if err != nil {
		return nil, failed(err)
	}
	loop, err := attach(file)
	if err != nil {
		return nil, failed(err)
	}
	defer loop.Close() // from here on the mount holds it
	return answer, failed(unix.Mount(loop.Name(), path, "xfs", 0, ""))
}

func (mounter) NodeUnstageVolume(_ context.Context, request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, unmount(request.StagingTargetPath)
}

// Once a pod.
func (mounter) NodePublishVolume(_ context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	answer := &csi.NodePublishVolumeResponse{}
	if isMounted(request.TargetPath) {
		return answer, nil
	}
	if err := os.MkdirAll(request.TargetPath, 0o750); err != nil {
		return nil, failed(err)
	}
	return answer, failed(unix.Mount(request.StagingTargetPath, request.TargetPath, "", unix.MS_BIND, ""))
}

func (mounter) NodeUnpublishVolume(_ context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := unmount(request.TargetPath); err != nil {
		return nil, err
	}
	if err := os.Remove(request.TargetPath); err != nil && !os.IsNotExist(err) {
		return nil, failed(err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func (mounter) NodeExpandVolume(_ context.Context, request *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if err := readSizeAgain(request.VolumePath); err != nil {
		return nil, failed(err)
	}
	if err := run("xfs_growfs", request.VolumePath); err != nil {
		return nil, err
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: request.GetCapacityRange().GetRequiredBytes()}, nil
}
