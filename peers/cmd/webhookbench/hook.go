package main

import (
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
)

// What the configuration of Portcullis in this benchmark says, too.
const (
	timeout         = 5 * time.Second
	authorizedTTL   = 5 * time.Minute
	unauthorizedTTL = 5 * time.Minute
)

// recorder counts what kube-apiserver counts.
type recorder struct {
	metrics.NoopRequestMetrics
	metrics.WebhookMetrics
	authorizationcel.MatcherMetrics
}

// load makes the authorizer as kube-apiserver makes it from its configuration.
func load(kubeconfig, condition string) (authorizer.Authorizer, error) {
	config, err := webhookutil.LoadKubeconfig(kubeconfig, nil)
	if err != nil {
		return nil, err
	}
	config.Timeout = timeout
	var conditions []apiserver.WebhookMatchCondition
	if condition != "" {
		conditions = append(conditions, apiserver.WebhookMatchCondition{Expression: condition})
	}
	return webhook.New(
		config,
		"v1",
		authorizedTTL,
		unauthorizedTTL,
		*webhook.DefaultRetryBackoff(),
		authorizer.DecisionNoOpinion,
		conditions,
		"bench",
		recorder{
			WebhookMetrics: metrics.NewWebhookMetrics(),
			MatcherMetrics: authorizationcel.NewMatcherMetrics(),
		},
		authorizationcel.NewDefaultCompiler(),
	)
}
