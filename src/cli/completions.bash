
# `cargo ddfuzz`: what is typed is completed as for cargo-ddfuzz, and all else as before.
_cargo_with_ddfuzz() {
    if [[ ${COMP_CWORD} -ge 2 && ${COMP_WORDS[1]-} == ddfuzz ]]; then
        local COMP_WORDS=(cargo-ddfuzz "${COMP_WORDS[@]:2}") COMP_CWORD=$((COMP_CWORD - 1))
        local prev=$3
        if [[ ${COMP_CWORD} -eq 1 ]]; then
            prev=cargo-ddfuzz
        fi
        _cargo_ddfuzz cargo-ddfuzz "$2" "${prev}"
    elif [[ -n ${_cargo_before_ddfuzz-} ]]; then
        "${_cargo_before_ddfuzz}" "$@"
    fi
}

if ! complete -p cargo &>/dev/null; then
    if declare -F _comp_load &>/dev/null; then
        _comp_load cargo &>/dev/null
    elif declare -F _completion_loader &>/dev/null; then
        _completion_loader cargo &>/dev/null
    fi
fi
if [[ $(complete -p cargo 2>/dev/null) =~ -F\ ([^ ]+) && ${BASH_REMATCH[1]} != _cargo_with_ddfuzz ]]; then
    _cargo_before_ddfuzz=${BASH_REMATCH[1]}
fi
complete -F _cargo_with_ddfuzz -o bashdefault -o default cargo
