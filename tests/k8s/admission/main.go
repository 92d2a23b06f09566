// Package main says of objects what kube-apiserver would: whether each decodes strictly, is valid once defaults are
// filled in, and, of pods, whether a namespace under the restricted Pod Security Standard lets them in. It reads a JSON
// list of objects and writes one line for each complaint; its exit code is 1 when there are any.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podrules "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	scalingvalidation "k8s.io/kubernetes/pkg/apis/autoscaling/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	networkvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	securityapi "k8s.io/pod-security-admission/api"
	security "k8s.io/pod-security-admission/policy"
)

func main() {
	var objects []json.RawMessage
	if err := json.NewDecoder(os.Stdin).Decode(&objects); err != nil {
		fmt.Fprintln(os.Stderr, "not a list of objects:", err)
		os.Exit(2)
	}
	// No check can be missing: it is the library's own list.
	restricted, err := security.NewEvaluator(security.DefaultChecks(), nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	failed := false
	for _, object := range objects {
		name, complaints := vet(object, restricted)
		for _, complaint := range complaints {
			failed = true
			fmt.Printf("%s: %s\n", name, complaint)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// vet returns an object's kind and name, and what is wrong with it.
func vet(raw []byte, restricted security.Evaluator) (string, []string) {
	var about metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &about); err != nil {
		return "?", []string{err.Error()}
	}
	name := about.Kind + " " + about.Name
	codecs := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict)
	object, _, err := codecs.UniversalDecoder().Decode(raw, nil, nil)
	if err != nil {
		return name, []string{err.Error()}
	}
	found, known := invalid(object)
	if !known {
		return name, []string{"no rules for this kind here"}
	}
	complaints := make([]string, 0, len(found))
	for _, one := range found {
		complaints = append(complaints, one.Error())
	}
	return name, append(complaints, refused(object, restricted)...)
}

// invalid validates an object as on its creation. It says so when it has no rules for it.
func invalid(object runtime.Object) (field.ErrorList, bool) {
	switch one := object.(type) {
	case *apps.Deployment:
		options := podrules.GetValidationOptionsFromPodTemplate(&one.Spec.Template, nil)
		return appsvalidation.ValidateDeployment(one, options), true
	case *core.Pod:
		options := podrules.GetValidationOptionsFromPodSpecAndMeta(&one.Spec, nil, &one.ObjectMeta, nil)
		return corevalidation.ValidatePodCreate(one, options), true
	case *core.Service:
		return corevalidation.ValidateServiceCreate(withAddress(one)), true
	case *core.ConfigMap:
		return corevalidation.ValidateConfigMap(one), true
	case *core.ServiceAccount:
		return corevalidation.ValidateServiceAccount(one), true
	case *core.PersistentVolumeClaim:
		options := corevalidation.ValidationOptionsForPersistentVolumeClaim(one, nil)
		return corevalidation.ValidatePersistentVolumeClaim(one, options), true
	case *networking.NetworkPolicy:
		options := networkvalidation.ValidationOptionsForNetworking(one, nil)
		return networkvalidation.ValidateNetworkPolicy(one, options), true
	case *policy.PodDisruptionBudget:
		options := policyvalidation.PodDisruptionBudgetValidationOptions{}
		return policyvalidation.ValidatePodDisruptionBudget(one, options), true
	case *autoscaling.HorizontalPodAutoscaler:
		options := scalingvalidation.HorizontalPodAutoscalerSpecValidationOptions{MinReplicasLowerBound: 1}
		return scalingvalidation.ValidateHorizontalPodAutoscaler(one, options), true
	}
	return nil, false
}

// withAddress fills in what the server allocates before it validates.
func withAddress(service *core.Service) *core.Service {
	if service.Spec.ClusterIP == core.ClusterIPNone {
		service.Spec.ClusterIPs = []string{core.ClusterIPNone}
	}
	if len(service.Spec.IPFamilies) == 0 {
		service.Spec.IPFamilies = []core.IPFamily{core.IPv4Protocol}
		single := core.IPFamilyPolicySingleStack
		service.Spec.IPFamilyPolicy = &single
	}
	return service
}

// refused says why a namespace under the restricted standard would not let the object's pods in.
func refused(object runtime.Object, restricted security.Evaluator) []string {
	var pod corev1.Pod
	var made core.Pod
	switch one := object.(type) {
	case *core.Pod:
		made = *one
	case *apps.Deployment:
		made = core.Pod{ObjectMeta: one.Spec.Template.ObjectMeta, Spec: one.Spec.Template.Spec}
	default:
		return nil
	}
	if err := legacyscheme.Scheme.Convert(&made, &pod, nil); err != nil {
		return []string{err.Error()}
	}
	level := securityapi.LevelVersion{Level: securityapi.LevelRestricted, Version: securityapi.LatestVersion()}
	whole := security.AggregateCheckResults(restricted.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
	if whole.Allowed {
		return nil
	}
	return []string{"violates PodSecurity restricted: " + whole.ForbiddenDetail()}
}
