package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/auth/authorizer/abac"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/node"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// superuserGroup is what kube-apiserver allows everything, before any other
// authorizer is asked.
const superuserGroup = "system:masters"

// load makes the authorizer of a contest. What it loads for that is kept in
// loaded, by folder.
func load(root string, c contest, loaded map[string]authorizer.Authorizer) (authorizer.Authorizer, error) {
	for _, folder := range c.Policies {
		if loaded[folder] != nil {
			continue
		}
		made, err := loadFolder(filepath.Join(root, folder))
		if err != nil {
			return nil, err
		}
		loaded[folder] = made
	}
	switch {
	case c.Authorizer != "chain" && len(c.Policies) == 1:
		return loaded[c.Policies[0]], nil
	case c.Authorizer == "chain" && len(c.Policies) == 2:
		return union.New(
			union.NamedAuthorizer{AuthorizerName: "superuser", Authorizer: authorizerfactory.NewPrivilegedGroups(superuserGroup)},
			union.NamedAuthorizer{AuthorizerName: "node", Authorizer: loaded[c.Policies[1]]},
			union.NamedAuthorizer{AuthorizerName: "rbac", Authorizer: loaded[c.Policies[0]]},
		)
	}
	return nil, fmt.Errorf("no authorizer %q of %d policies", c.Authorizer, len(c.Policies))
}

// loadFolder makes an authorizer from the files of a folder, whose name begins
// with its kind.
func loadFolder(folder string) (authorizer.Authorizer, error) {
	kind, _, _ := strings.Cut(filepath.Base(folder), "-")
	switch kind {
	case "abac":
		return abac.NewFromFile(filepath.Join(folder, "policy.jsonl"))
	case "node":
		return loadNode(folder)
	case "rbac":
		return loadRBAC(folder)
	}
	return nil, fmt.Errorf("no kind of policy has the folder %q", folder)
}

// loadRBAC fills the caches from which kube-apiserver's informers serve the
// authorizer.
func loadRBAC(folder string) (authorizer.Authorizer, error) {
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	newIndexer := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace)
	}
	roles, clusterRoles := newIndexer(), newIndexer()
	bindings, clusterBindings := newIndexer(), newIndexer()
	err := readLines(filepath.Join(folder, "roles.jsonl"), func(role *rbacv1.Role) error {
		if role.Kind == "Role" {
			return roles.Add(role)
		}
		return clusterRoles.Add(&rbacv1.ClusterRole{ObjectMeta: role.ObjectMeta, Rules: role.Rules})
	})
	if err != nil {
		return nil, err
	}
	err = readLines(filepath.Join(folder, "bindings.jsonl"), func(binding *rbacv1.RoleBinding) error {
		if binding.Kind == "RoleBinding" {
			return bindings.Add(binding)
		}
		return clusterBindings.Add(&rbacv1.ClusterRoleBinding{
			ObjectMeta: binding.ObjectMeta,
			Subjects:   binding.Subjects,
			RoleRef:    binding.RoleRef,
		})
	})
	if err != nil {
		return nil, err
	}
	return rbac.New(
		&rbac.RoleGetter{Lister: rbaclisters.NewRoleLister(roles)},
		&rbac.RoleBindingLister{Lister: rbaclisters.NewRoleBindingLister(bindings)},
		&rbac.ClusterRoleGetter{Lister: rbaclisters.NewClusterRoleLister(clusterRoles)},
		&rbac.ClusterRoleBindingLister{Lister: rbaclisters.NewClusterRoleBindingLister(clusterBindings)},
	), nil
}

// loadNode fills the graph as the handlers of informers do.
func loadNode(folder string) (authorizer.Authorizer, error) {
	graph := node.NewGraph()
	err := readLines(filepath.Join(folder, "objects.jsonl"), func(raw *json.RawMessage) error {
		var object struct {
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal(*raw, &object); err != nil {
			return err
		}
		switch object.Kind {
		case "Pod":
			var pod corev1.Pod
			if err := json.Unmarshal(*raw, &pod); err != nil {
				return err
			}
			graph.AddPod(&pod)
		case "PersistentVolume":
			var volume corev1.PersistentVolume
			if err := json.Unmarshal(*raw, &volume); err != nil {
				return err
			}
			graph.AddPV(&volume)
		default:
			return fmt.Errorf("no object of kind %q counts", object.Kind)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return node.NewAuthorizer(graph, nodeidentifier.NewDefaultNodeIdentifier(), bootstrappolicy.NodeRules()), nil
}
