/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"
#include "kubesim/kubelet_parts.h"

#include <stdio.h>

/* What of a pod's behaviour bears on an image. */
enum { BEHAVE_IMAGE = BEHAVE_SAME_DIGEST | BEHAVE_RENAME };

/* Where the tag begins (at its colon), or NULL: a colon before the last slash is a port. */
static const char *tag_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *colon = strrchr(name, ':');
    return colon && (!slash || colon > slash) ? colon : NULL;
}

/* docker's rule: the first part is a registry when it has a dot or a port, or is localhost. */
static bool has_registry(const char *name)
{
    size_t length = strcspn(name, "/");
    if (!name[length])
        return false;
    return memchr(name, '.', length) || memchr(name, ':', length) || strncmp(name, "localhost/", 10) == 0;
}

char *image_normalise(const char *name)
{
    const char *prefix = "";
    if (!has_registry(name))
        prefix = strchr(name, '/') ? "docker.io/" : "docker.io/library/";
    bool complete = strchr(name, '@') || tag_of(name);
    return xasprintf("%s%s%s", prefix, name, complete ? "" : ":latest");
}

static unsigned behaviour_of_name(const char *name)
{
    const char *tag = tag_of(name);
    unsigned flags = strstr(name, "slow") ? BEHAVE_SLOW_PULL : 0;
    if (!tag)
        return flags;
    if (str_starts_with(tag, ":none"))
        flags |= BEHAVE_FAIL_PULL;
    if (str_starts_with(tag, ":crash"))
        flags |= BEHAVE_CRASH;
    if (str_starts_with(tag, ":unready"))
        flags |= BEHAVE_NEVER_READY;
    if (str_starts_with(tag, ":done"))
        flags |= BEHAVE_DONE;
    return flags;
}

static const char *given_digest(const struct kubelet *kubelet, const char *name)
{
    for (size_t i = 0; i < kubelet->options.digest_count; i++)
        if (strcmp(kubelet->options.digests[i].image, name) == 0)
            return kubelet->options.digests[i].digest;
    return NULL;
}

static void set_digest(const struct kubelet *kubelet, struct image *image, unsigned behaviour)
{
    const char *given = given_digest(kubelet, image->name);
    const char *in_name = strchr(image->name, '@');
    if (given || in_name) {
        snprintf(image->image_id, sizeof(image->image_id), "%s", given ? given : in_name + 1);
        return;
    }
    CLEANUP_FREE char *what = image_normalise(image->name);
    size_t length = strlen(what);
    const char *tag = tag_of(what);
    if (behaviour & BEHAVE_SAME_DIGEST && tag)
        length = (size_t)(tag - what);
    else if (str_ends_with(what, "same"))
        length -= strlen("same");
    uint8_t digest[SHA256_SIZE];
    sha256_once(what, length, digest);
    CLEANUP_FREE char *hex = hex_encode(digest, sizeof(digest));
    snprintf(image->image_id, sizeof(image->image_id), "sha256:%s", hex);
}

/* The runtime knows a digest by all its tags and reports one of them: the first by name. */
static void report_first_tag(const struct kubelet *kubelet, struct image *image)
{
    for (const struct image *other = kubelet->images; other; other = other->hh.next)
        if (strcmp(other->image_id, image->image_id) == 0 && strcmp(other->reported, image->reported) < 0)
            str_replace(&image->reported, other->reported);
}

struct image *image_get(struct kubelet *kubelet, const char *name, unsigned behaviour)
{
    CLEANUP_FREE char *key = xasprintf("%x %s", behaviour & (unsigned)BEHAVE_IMAGE, name);
    struct image *image;
    HASH_FIND_STR(kubelet->images, key, image);
    if (image)
        return image;
    image = xcalloc(1, sizeof(*image));
    image->key = STEAL(key);
    image->name = xstrdup(name);
    image->reported = image_normalise(name);
    image->behaviour = behaviour_of_name(name);
    set_digest(kubelet, image, behaviour);
    report_first_tag(kubelet, image);
    const char *tag = tag_of(image->reported);
    if (behaviour & BEHAVE_RENAME && tag) {
        char *renamed = xasprintf("%.*s:renamed", (int)(tag - image->reported), image->reported);
        free(image->reported);
        image->reported = renamed;
    }
    HASH_ADD_KEYPTR(hh, kubelet->images, image->key, strlen(image->key), image);
    return image;
}

void images_free(struct kubelet *kubelet)
{
    struct image *image = kubelet->images;
    HASH_CLEAR(hh, kubelet->images);
    while (image) {
        struct image *next = image->hh.next;
        free(image->key);
        free(image->name);
        free(image->reported);
        free(image);
        image = next;
    }
}
