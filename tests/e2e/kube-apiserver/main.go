// A real kube-apiserver for the e2e suite: the project's own command, built from its module.
package main

import (
	"os"

	_ "time/tzdata"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
