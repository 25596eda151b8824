# The judgement of resize.sh: which claims must grow, or why not. The same rules as volume_decide(); the cases in
# tests/volume/cases run through both. Runs on jq 1.6 and newer; whole numbers of any length are digits and limbs,
# because jq's own are doubles.
#
# Input: RESIZE_DECLARED, $lives (a StatefulSet or null for each of it) and $claims (a list answer). Output: lines of a word
# and what it says, separated by tabs; see the end.

# --- sizes: an exact count of nano-units, as digits without leading zeros -----------------------------------------

def strip: sub("\\A0+(?=.)"; "");
def zeros(n): if n > 0 then "0" * n else "" end;
def limbs: . as $digits | [range(length; 0; -7) as $stop | $digits[([$stop - 7, 0] | max):$stop] | tonumber];
def digits: (map(tostring | zeros(7 - length) + .) | reverse | join("")) | strip;
# Limbs times factor, plus what is carried in; both are small.
def times(factor; carried):
    reduce .[] as $limb ({out: [], carry: carried};
        ($limb * factor + .carry) as $value | .carry = ($value / 10000000 | floor) | .out += [$value - .carry * 10000000])
    | .out + (if .carry > 0 then [.carry] else [] end);
def less(a; b): a as $a | b as $b | ($a | length) < ($b | length) or (($a | length) == ($b | length) and $a < $b);

# Digits times ten to the power of n; what is finer than a nano-unit is rounded up.
def shift(n):
    if . == "0" then "0"
    elif n >= 0 then . + zeros(n)
    else (length + n) as $keep
    | (if $keep > 0 then .[0:$keep] else "0" end) as $head
    | (if $keep > 0 then .[$keep:] else . end) as $tail
    | if ($tail | test("[1-9]")) then $head | limbs | times(1; 1) | digits else $head end
    end;

def binary: {Ki: 1, Mi: 2, Gi: 3, Ti: 4, Pi: 5, Ei: 6};
def decimal: {"": 0, n: -9, u: -6, m: -3, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18};

# Of a text, in the grammar of Kubernetes: {text, nano, negative}, without nano when it is no size that fits.
def size:
    . as $given | (if type == "number" then tostring elif type == "string" then . else "" end) as $text
    | {text: ($given | if type == "string" then . else tojson end)}
    + ([$text | sub("\\A[ \\t\\r\\n]+"; "") | sub("[ \\t\\r\\n]+\\z"; "")
        | capture("\\A(?<sign>[-+]?)(?<whole>[0-9]*)([.](?<part>[0-9]*))?(?<suffix>[KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]{1,9})?\\z")]
        | if length == 0 or $text == "" then {}
          else .[0] | (.part // "") as $part | (.suffix // "") as $suffix
          | (if $suffix | test("\\A[eE][-+]?[0-9]") then $suffix[1:] | ltrimstr("+") | tonumber else decimal[$suffix] // 0 end) as $ten
          | (.whole + $part | strip | if . == "" then "0" else . end) as $number
          | (9 + $ten - ($part | length)) as $by
          | (if binary[$suffix]
             then $number | limbs | reduce range(binary[$suffix]) as $i (.; times(1024; 0)) | digits | shift($by)
                 | if less("9223372036854775807000000000"; .) then "9223372036854775807000000000" else . end
             elif $number != "0" and ($number | length) + $by > 39 then "too large"
             else $number | shift($by)
             end) as $nano
          | if $nano == "too large" or less("340282366920938463463374607431768211455"; $nano) then {}
            else {nano: $nano, negative: (.sign == "-" and $nano != "0")} end
          end);
# A size's bytes, rounded up, plus one: the least growth.
def one_more: .nano | shift(-9) | limbs | times(1; 1) | digits;

# --- templates ----------------------------------------------------------------------------------------------------

def request: .spec.resources.requests.storage;
def is_empty: . == null or . == {} or . == [];
def without_empty:
    if type == "object" then with_entries(.value |= without_empty) | with_entries(select(.value | is_empty | not))
    elif type == "array" then map(without_empty) else . end;
def sizes_by_value: if type == "object" then map_values(size | if .nano then {nano, negative} else .text end) else . end;

# What must not differ, with the defaults that a server puts in and without what it echoes.
def comparable:
    {labels: .metadata.labels, annotations: .metadata.annotations,
     spec: (.spec // {} | del(.resources.requests.storage)
            | .volumeMode = (.volumeMode // "Filesystem")
            | if .volumeName == "" then del(.volumeName) else . end
            | if .selector == {} then .selector = "every volume" else . end
            | if .resources then .resources |= (if type == "object" then map_values(sizes_by_value) else . end) else . end)}
    | without_empty;
def differing(a; b):
    a as $a | b as $b | [(["labels", "annotations"][] | select($a[.] != $b[.]) | "metadata." + .),
        ((($a.spec // {}) + ($b.spec // {}) | keys[]) | select($a.spec[.] != $b.spec[.]) | "spec." + .)];

def selector: {labels: (.matchLabels // {}), expressions: (.matchExpressions // [] | map(without_empty))};
def listed: if length == 0 then "none" else join(", ") end;

# --- one set --------------------------------------------------------------------------------------------------------

def refusal(says): {outcome: "refused", says: [says]};
def fault(says): {outcome: "fault", says: [says]};

def bad_size($set):
    [.volumeClaimTemplates[]? | .metadata.name as $name | request as $request | ($request | size) as $size
     | if $request == null then "volumeClaimTemplate \($name) says no spec.resources.requests.storage"
       elif $size.nano == null then "volumeClaimTemplate \($name): \($size.text) is no size that fits"
       elif $size.nano == "0" or $size.negative then "volumeClaimTemplate \($name): \($size.text) is not above zero"
       else empty end];

def class: .metadata.annotations["volume.beta.kubernetes.io/storage-class"] // .spec.storageClassName // "";

def claims_named($set; $template; $all):
    ($template + "-" + $set + "-") as $prefix
    | [$all[] | select(.metadata.name | startswith($prefix))
       | select(.metadata.name[($prefix | length):] | test("\\A(0|[1-9][0-9]{0,9})\\z") and tonumber <= 2147483647)];

# Guarded by what was read: a claim that changed meanwhile is not touched.
def patch($wanted):
    {metadata: (.metadata | {uid, resourceVersion}), spec: {resources: {requests: {storage: $wanted}}}} | tojson;

# The claims of a template that are below its size.
def claims_of($set; $template; $all):
    ($template | request | size) as $to
    | [claims_named($set; $template.metadata.name; $all)[] | select(.metadata.deletionTimestamp == null)
       | (request // "0" | size) as $from | select($from.nano != null and less($from.nano; $to.nano))
       | {name: .metadata.name, from: $from.text, to: $to.text, class: class, phase: .status.phase,
          patches: [($from.text, $to.text, ($from | one_more)) as $wanted | patch($wanted)]}];

def other_immutable($live):
    [(if (.serviceName // "") != ($live.spec.serviceName // "") then "spec.serviceName" else empty end),
     (if (.podManagementPolicy // "OrderedReady") != ($live.spec.podManagementPolicy // "OrderedReady")
      then "spec.podManagementPolicy" else empty end),
     (if (.selector // {} | selector) != ($live.spec.selector // {} | selector) then "spec.selector" else empty end)];

# A size that its driver will never reach must not become the template's.
def is_infeasible:
    .metadata.deletionTimestamp == null and .status.allocatedResources.storage == request
    and ((.status.allocatedResourceStatuses.storage // "") | test("\\AControllerResize(Infeasible|Failed)\\z"));

# The size that a growth failed at can be lowered again: no claim has got there.
def way_back($small; $claims; $set):
    [$small[] | .to as $to | claims_named($set; .name; $claims)[] | (.status.capacity.storage // "0" | size) | .nano != null and less(.nano; ($to | size).nano)]
    | length > 0 and all;

def judge_templates($live; $claims):
    . as $declared | (.volumeClaimTemplates // []) as $new | ($live.spec.volumeClaimTemplates // []) as $old
    | if ($new | map(.metadata.name)) != ($old | map(.metadata.name)) then
        refusal("the volumeClaimTemplates are \($old | map(.metadata.name) | listed), declared are \($new | map(.metadata.name) | listed): none can be added, removed, renamed or moved; give back the old ones")
      else
        [range($new | length) as $i | {name: $new[$i].metadata.name, fields: differing($old[$i] | comparable; $new[$i] | comparable),
            from: ($old[$i] | request // "0" | size), to: ($new[$i] | request | size)}] as $pairs
        | [$pairs[] | select(.fields | length > 0)] as $changed
        | [$pairs[] | select(less(.to.nano; .from.nano // "0")) | {name, from: .from.text, to: .to.text}] as $small
        | [$pairs[] | select(less(.from.nano // "0"; .to.nano)) | {name, from: .from.text, to: .to.text}] as $grown
        | if $changed != [] then
            refusal("a volumeClaimTemplate changed in a way other than a larger storage request: \($changed | map("\(.name): \(.fields | join(", "))") | join("; ")); give back the old values")
          elif $small != [] then
            refusal("a volume cannot shrink: \($small | map("\(.name) \(.from) -> \(.to)") | join(", "))"
                + (if way_back($small; $claims; $declared.name) then "; its growth failed, and `neosetctl resize recover` leads back"
                   else "; declare at least the old size" end))
          elif $grown == [] then {outcome: "nothing", says: ["its volumes are as declared"]}
          else {outcome: "grow", grown: $grown, says: []}
          end
      end;

# What re-creating the set from a manifest that the script does not see could break.
def judge_live($live):
    other_immutable($live) as $fields | (.replicas // 1) as $declared | ($live.spec.replicas // 1) as $replicas
    | if $fields != [] then
        refusal("the StatefulSet changes an immutable field other than its volume sizes: \($fields | join(", ")); give back the old value")
      elif $replicas > $declared then
        refusal("it runs \($replicas) replicas and \($declared) are declared: made anew it would delete pods; declare replicas: \($replicas), or scale it down first")
      elif ($live.spec.updateStrategy.rollingUpdate.partition // 0) > 0
          and $live.status.updateRevision != $live.status.currentRevision then
        refusal("a canary is held by its partition, and would be lost: finish the rollout or take it back first, or use `neosetctl resize converge`")
      else empty end;

def notes($live):
    if $live.spec.template.metadata.annotations["kubectl.kubernetes.io/restartedAt"] then
        ["note: its pods were restarted by `kubectl rollout restart`: unless the manifest has the annotation kubectl.kubernetes.io/restartedAt, the next apply restarts them"]
    else [] end;

def judge_claims($live; $claims; $plan):
    . as $declared
    | ([$declared.volumeClaimTemplates[] | select(.metadata.name as $name | $plan.grown | any(.name == $name))
        | claims_of($declared.name; .; $claims)] | add | sort_by(.name)) as $small
    | [$small[] | select(.class == "")] as $classless | [$small[] | select(.phase != "Bound")] as $unbound
    | if $classless != [] then
        refusal("the storage class of a claim does not allow volume expansion: \($classless | map("\(.name) has no class (\(.from) -> \(.to))") | join(", "))")
      else $plan + {claims: [$small[] | select(.phase == "Bound")],
            unbound: [$unbound[] | "claim \(.name) is \(.phase // "not bound"), and only a bound one can grow: bind it, or delete it, it holds no data"],
            infeasible: [$declared.volumeClaimTemplates[] | claims_named($declared.name; .metadata.name; $claims)[] | select(is_infeasible)
                | "claim \(.metadata.name) cannot become \(request), its driver says; it has \(.status.capacity.storage // "nothing")"],
            says: (($plan.grown | map("volumes \(.name) \(.from) -> \(.to)")) + notes($live) + ["\($small | length) claims to grow"])}
      end;

def judge($live; $claims):
    if $live == null then {outcome: "nothing", says: ["it is not there: the next apply creates it"]}
    else bad_size(.name) as $bad
    | if $bad != [] then fault($bad | join("; "))
      else judge_templates($live; $claims) as $plan
      | if $plan.outcome != "grow" then $plan
        else first(judge_live($live), judge_claims($live; $claims; $plan)) end
      end
    end;

# account  NAME SENTENCE: of each set, for people
# refused, fault, unbound, infeasible  SENTENCE: what is in the way
# claim    NAME FROM TO and patches to the same size, the target, one byte more
# set      NAME UID GENERATION; gone NAME UID: it is being deleted already
($ENV.RESIZE_DECLARED | fromjson) as $declared
| [range($declared | length) as $i | $declared[$i] | {name, live: $lives[$i]} + judge($lives[$i]; $claims[0].items)]
| (.[] | "StatefulSet \(.name): " as $who | (.says[] | ["account", $who + .]),
    (select(.outcome == "refused" or .outcome == "fault") | [.outcome, $who + .says[]]),
    (.unbound[]? | ["unbound", $who + .]), (.infeasible[]? | ["infeasible", $who + .])),
  (map(select(.outcome == "grow" and .live.metadata.deletionTimestamp == null)) | map(.claims[]) | sort_by(.name)[] | ["claim", .name, .from, .to] + .patches),
  (.[] | select(.outcome == "grow") | .name as $name | .live
    | if .metadata.deletionTimestamp then ["gone", $name, .metadata.uid]
      else ["set", $name, .metadata.uid, (.metadata.generation // 0 | tostring)] end)
| join("\t")
