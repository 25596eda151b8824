// SPDX-License-Identifier: Apache-2.0

// A CSI driver for the tests of growing volumes: a volume is a file with XFS on a loop device of this machine. (ext4 grows
// online only for who has CAP_SYS_RESOURCE, XFS for who may mount.) It runs in the node's namespaces, beside the kubelet, and
// answers the kubelet's plugin registration itself. It is storage that ends somewhere: no volume becomes larger than
// -largest ("out of range"), all of them together not larger than -pool ("resource exhausted").
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const version = "1"

var (
	name     = flag.String("name", "loop.neo.test", "the driver's name, a StorageClass's provisioner")
	node     = flag.String("node", "node-1", "the name of the node it runs on")
	endpoint = flag.String("endpoint", "", "socket on which it speaks CSI")
	register = flag.String("register", "", "socket in the kubelet's plugins_registry")
	data     = flag.String("data", "", "directory of the volumes' files")
	largest  = flag.Int64("largest", 1<<62, "bytes that a volume may have")
	total    = flag.Int64("pool", 1<<62, "bytes that all volumes together may have")
)

// The kubelet's question who is behind a socket.
type registrar struct {
	registration.UnimplementedRegistrationServer
}

func (registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: *name, Endpoint: *endpoint,
		SupportedVersions: []string{"1.0.0"}}, nil
}

func (registrar) NotifyRegistrationStatus(_ context.Context, told *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	log.Printf("registered: %v %s", told.PluginRegistered, told.Error)
	return &registration.RegistrationStatusResponse{}, nil
}

// Each call as a line, but those that are asked all the time.
func logged(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	begin := time.Now()
	answer, err := handle(ctx, request)
	if !strings.HasSuffix(info.FullMethod, "Capabilities") && !strings.HasSuffix(info.FullMethod, "/Probe") {
		log.Printf("%s %v: %v, error %v, %v", info.FullMethod, request, answer, err, time.Since(begin).Round(time.Millisecond))
	}
	return answer, err
}

func serve(socket string, add func(*grpc.Server)) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		log.Fatal(err)
	}
	os.Remove(socket) // of an earlier life
	listener, err := net.Listen("unix", socket)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(logged))
	add(server)
	log.Fatal(server.Serve(listener))
}

func main() {
	flag.Parse()
	log.SetFlags(log.Lmicroseconds)
	if *endpoint == "" || *register == "" || *data == "" {
		log.Fatal("-endpoint, -register and -data are needed")
	}
	volumes := &pool{dir: *data, largest: *largest, total: *total}
	if err := os.MkdirAll(*data, 0o755); err != nil {
		log.Fatal(err)
	}
	// The kubelet calls back as soon as it sees the registration: the other socket is there first.
	go func() {
		for range time.Tick(50 * time.Millisecond) {
			if _, err := os.Stat(*endpoint); err == nil {
				break
			}
		}
		serve(*register, func(server *grpc.Server) { registration.RegisterRegistrationServer(server, registrar{}) })
	}()
	serve(*endpoint, func(server *grpc.Server) {
		csi.RegisterIdentityServer(server, identity{})
		csi.RegisterControllerServer(server, controller{pool: volumes})
		csi.RegisterNodeServer(server, mounter{pool: volumes})
	})
}
