//go:build tools

// Package tools pins the version of Cluster API that `make compare` measures beside plimsoll.
// The newest 1.12 that the module proxy gives out; 1.12.11 it refuses.
package tools

import _ "sigs.k8s.io/cluster-api/controlplane/kubeadm"
