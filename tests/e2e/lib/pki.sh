# shellcheck shell=bash
# A made-up CA, client certificates and kubeconfigs. The keys live as long as the state directory.

# Our own file, so that no setting of the machine's openssl.cnf adds or changes an extension.
pki_config() { printf '[req]\ndistinguished_name = dn\nprompt = no\n[dn]\n%s\n[x]\n%s\n' "$1" "$2"; }

make_ca() { # into $E2E_STATE/pki
    local pki=$E2E_STATE/pki
    (umask 077 && mkdir -p "$pki")
    pki_config 'CN = neoset-e2e' 'basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash' >"$pki/ca.cnf"
    openssl req -x509 -config "$pki/ca.cnf" -extensions x -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc \
        -keyout "$pki/ca.key" -out "$pki/ca.crt" -days 30 2>"$pki/openssl.log"
}

# make_certificate NAME USER GROUP [SUBJECT_ALT_NAMES]: the API server reads user and group from CN and O.
make_certificate() {
    local pki=$E2E_STATE/pki name=$1 subject="CN = $2" extensions='basicConstraints = CA:FALSE
extendedKeyUsage = clientAuth, serverAuth'
    [ -z "$3" ] || subject="$subject
O = $3"
    [ -z "${4:-}" ] || extensions="$extensions
subjectAltName = $4"
    pki_config "$subject" "$extensions" >"$pki/$name.cnf"
    openssl req -x509 -config "$pki/$name.cnf" -extensions x -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc \
        -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -keyout "$pki/$name.key" -out "$pki/$name.crt" -days 30 \
        2>>"$pki/openssl.log" || die "no certificate for $name, see $pki/openssl.log"
}

# make_user NAME USER GROUP: a certificate and $E2E_STATE/NAME.kubeconfig, complete in itself.
make_user() {
    local pki=$E2E_STATE/pki
    make_certificate "$@"
    (umask 077 && cat >"$E2E_STATE/$1.kubeconfig") <<EOF
apiVersion: v1
kind: Config
clusters:
- name: e2e
  cluster:
    server: $E2E_SERVER
    certificate-authority-data: $(base64 -w 0 <"$pki/ca.crt")
users:
- name: $1
  user:
    client-certificate-data: $(base64 -w 0 <"$pki/$1.crt")
    client-key-data: $(base64 -w 0 <"$pki/$1.key")
contexts:
- name: e2e
  context: {cluster: e2e, user: $1, namespace: default}
current-context: e2e
EOF
}
